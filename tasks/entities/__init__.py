"""Wikipedia's entities in any text.

annotator     names of a mention table, found and resolved
annotations   the same as input of extractive question answering
"""
