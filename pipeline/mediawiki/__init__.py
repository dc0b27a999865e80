"""What MediaWiki's configuration says of a wiki.

languages   namespaces, redirect words, magic words and link trails by language; tables in `data/`
site        a dump's own site information
titles      normalisation of titles, redirects, disambiguation pages
tags        which HTML and extension tags hold running text
link_rules  which links are links to articles, and what they show
"""
