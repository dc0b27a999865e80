"""Finished tables, opened without loading them: what tasks and users import.

entities       the entity vocabulary and its aliases
names          surface forms: normalisation, and finding them in a text
annotator      names of the mention table in a text, with the pages that they stand for
mentions       the mention table: candidates of a name with their commonness, and its link probability
page_names     the names by which a page links to others
held_out       pages that pretraining never sees
targets        every page and every other linked title, by title and redirect
contexts       context words of each title; their cosine with a text
title_vectors  title embeddings; the coherence of candidates
"""
