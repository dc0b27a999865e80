"""Wikitext to paragraphs with links, in passes over the page; `extract` calls them in this order:

cut           templates, tables, comments and tags that are no running text; calls blocks, for what makes a line
scripts       one form of text that is written in several scripts
links/        links and their targets, by the rules in link_rules
lines         headings, items and running text; bold and italics; what is left inside a line
holes         what was cut out of a sentence, closed as a copy-editor would
paragraphs    paragraphs, with the spans of their links
placeholders  the characters by which the passes tell each other what stood there
"""
