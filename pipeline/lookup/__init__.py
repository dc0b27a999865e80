"""Finished tables, opened without loading them: what tasks and users import.

entities       the entity vocabulary and its aliases
names          what a name is, and where names occur in a text
annotator      names of the mention table in a text, with the pages that they stand for
mentions       the mention table: candidates of a name, link probability, commonness
page_names     the names by which a page links to others
held_out       which pages pretraining never sees
targets        what links can lead to, by title and redirect
contexts       the words around the links of each title and on its page, and how much a text's words are like them
title_vectors  a vector of each title, and how near the candidates of a text's mentions are to each other
"""
