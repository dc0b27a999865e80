"""The configuration of a wiki, as MediaWiki has it.

languages    namespaces, redirect words, magic words and link trails by language
data         the tables of `languages`; a new language is added there
characters   blanks of titles, character references
numbers      how a language writes numbers
site         a dump's own site information
conversions  titles of a wiki in several scripts, in the script in which they are compared
titles       normalisation of titles, redirects, disambiguation pages, links to the same page in other languages
wiki_rules   a user's own tables beside those of `languages`
tags         which HTML and extension tags hold running text
"""
