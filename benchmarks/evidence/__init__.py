"""What pretrained entities are worth: probes that docs/explanation/evidence.md describes.

known_entities    held-out entities that a model names right among all
disambiguation    held-out links among the targets of their texts
words_around      the baseline: words around an entity's links
"""
