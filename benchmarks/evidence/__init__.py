"""Probes of what a pretrained model knows of held-out pages.

known_entities                held-out entities that a model names among all
disambiguation, words_around  held-out links among the targets of their texts, beside a bag of words
"""
