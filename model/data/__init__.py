"""From shards to batches.

shards     sequences from Arrow files
masking    words and entities that are masked
collation  sequences to a batch
batches    parts that a budget of tokens allows
held_out   sequences that training never sees, with the labels of two baselines
"""
