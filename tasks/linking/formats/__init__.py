"""Formats of linked documents.

formats    all of them by name
spans      links in the order of the text
addresses  the pages' addresses
columns    AIDA-CoNLL's columns
page       an HTML page
wikitext   wikitext
"""
