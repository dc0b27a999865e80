"""From shards to masked sequences.

shards     sequences from Arrow files
masking    words and entities that are masked
order      the sequences in shuffled epochs, of each language its share
batches    items in parts by a budget of tokens
held_out   sequences that training never sees, with the labels of two baselines
"""
