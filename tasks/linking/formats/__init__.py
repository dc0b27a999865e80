"""Formats of linked documents.

formats    all of them by name
links      links in the order of the text, the addresses of pages
page       an HTML page
wikitext   wikitext
nif        NIF, read and written as RDF
"""
