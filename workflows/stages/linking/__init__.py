"""Stages of entity linking.

documents   documents of one's own linked, and a dump's pages as annotated documents
sentences   a dump's sentences whose names are all links
evaluation  the evaluation of the pretrained model
"""
