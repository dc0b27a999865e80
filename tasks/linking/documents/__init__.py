"""Documents with annotated mentions, and how each format of the field is read.

document    a document with its mentions
reading     any format by its first line; answers to documents, for scores
json_lines  ours, and those of ZELDA and ELEVANT
aida        AIDA-CoNLL's columns
wned        the XML files of WNED
"""
