"""Formats of linked documents.

formats     all of them by name: wikitext, NIF, a page of HTML, ELEVANT's articles
links       links in the order of the text, the addresses of pages
links.html  the template of a page
wikitext    wikitext
nif         NIF, read and written as RDF
"""
