"""Linked documents for people and programs: files in several formats, and a service over HTTP.

spans      mentions in the order of their text
addresses  where the pages of a wiki are
columns    AIDA-CoNLL's columns
wikitext   text with [[links]]
page       an HTML page to look at
formats    one of these by its name
service    documents and answers as JSON over HTTP
schema     the same for OpenAPI
batching   requests that come together are computed together
"""
