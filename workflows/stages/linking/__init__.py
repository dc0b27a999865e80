"""Stages of entity linking.

documents   documents of one's own linked, a dump's pages as annotated documents, and its sentences of links alone
evaluation  the evaluation of the pretrained model
"""
