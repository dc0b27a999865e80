"""LUKE (sections 3.1 to 3.3 of the paper); it needs torch alone.

config        sizes
presets.toml  those of the presets
batch         the input
flat          the input without padding
embeddings    words and entities: token, position, type
attention     entity-aware self-attention
encoder       the layers
new_entities  entities around words that have seen none
titles        vectors of entities by their titles' words
heads         masked words, masked entities, their loss
"""
