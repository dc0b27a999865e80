"""Wikitext to paragraphs with links, in passes over the page.

extract       the whole way: calls the passes in this order
cut           templates, tables, comments and tags that are no running text
templates     templates that show text
scripts       one form of text that is written in several scripts
links         links to their text, with marks around annotations
link_rules    targets and labels of links, and their patterns (prefix, trail), for links
lines         headings, items and running text; bold and italics; markup that is left inside a line
holes         gaps left by removed markup, and their repair
paragraphs    paragraphs, with the spans of their links
placeholders  the characters by which the passes tell each other what stood there
"""
