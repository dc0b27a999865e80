"""Joins and counts over the extracted pages, on Spark.

redirects      every title with the page that it ends at
links          every annotation with the page that its target ends at
entity_vocab   the entities that the model knows
mention_table  what names mean; the names by page, and what titles lead to
occurrences    how often names occur, in many texts at once
contexts       the heaviest words of each title: of its page, and around links to it
title_vectors  a vector of each title, by the pages that it stands on: a part of contexts
"""
