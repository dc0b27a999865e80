"""Joins and counts over the extracted pages, on Spark.

redirects        follows redirects: each title to its final page
links            every annotation with its target's final page
entity_vocab     the entities that the model knows
entity_changes   what became of an earlier model's entities
merged_entities  one table of the entities of several wikis
mention_table    counts each anchor text's targets: commonness, link probability; names by page, targets by title
occurrences      how often names occur, in many texts at once
contexts         the heaviest words of each title: of its page, and around links to it
title_vectors    title embeddings by latent semantic analysis of links: a part of contexts
"""
