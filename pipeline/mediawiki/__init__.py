"""The configuration of a wiki, as MediaWiki has it.

languages   namespaces, redirect words, magic words and link trails by language
data        the tables of `languages`; a new language is added there
characters  blanks of titles, character references
numbers     how a language writes numbers
site        a dump's own site information
titles      normalisation of titles, redirects, disambiguation pages
tags        which HTML and extension tags hold running text
"""
