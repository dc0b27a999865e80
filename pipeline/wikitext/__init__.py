"""Wikitext to paragraphs with links, in passes over the page.

extract       the whole way: calls the passes in this order
cut           templates, tables, comments and tags that are no running text
templates     what templates show
blocks        what makes a line of its own, for cut
scripts       one form of text that is written in several scripts
links         links to their text, with marks around annotations
link_rules    where a link leads and what it shows, for links
lines         headings, items and running text; bold and italics; what is left inside a line
holes         what was cut out of a sentence, closed as a copy-editor would
paragraphs    paragraphs, with the spans of their links
placeholders  the characters by which the passes tell each other what stood there
"""
