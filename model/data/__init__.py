"""From shards to batches.

shards     sequences from Arrow files
masking    words and entities that are masked
collation  sequences to a batch
batches    cuts items by a budget of tokens
held_out   sequences that training never sees, with the labels of two baselines
"""
