"""What pretrained entities are worth: probes that docs/explanation/evidence.md describes.

disambiguation    held-out links among the targets of their texts
words_around      the baseline: words around an entity's links
"""
