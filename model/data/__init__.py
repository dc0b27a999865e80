"""From shards to batches.

shards     sequences from Arrow files
masking    words and entities that are masked
batches    sequences to a batch; items in parts by a budget of tokens
held_out   sequences that training never sees, with the labels of two baselines
"""
