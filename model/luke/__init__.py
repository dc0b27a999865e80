"""LUKE (sections 3.1 to 3.3 of the paper); it needs torch alone.

config        sizes
batch         the input: sequences, and batches of them without padding
embeddings    words and entities: token, position, type
attention     entity-aware self-attention
encoder       the layers
new_entities  initialises the entity side of a text-only model (RoBERTa, BERT)
titles        entity embeddings from the words of titles
heads         heads for masked words and masked entities, and their loss
"""
