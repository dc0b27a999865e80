"""From a Wikipedia dump to sharded sequences. Data pass through the first five folders in this order:

dump          the dump's files and its pages
mediawiki     a wiki's configuration: namespaces, titles, languages
wikitext      a page's wikitext into paragraphs with links
lookup        finished tables, opened to look up in: entities, mentions, names of pages, targets, contexts
sequences     paragraphs into sequences of word and entity ids
jobs          the stages on Beam and Spark, which call all of the above
storage       files that appear complete or not at all, and the manifests that list them
schemas       every table's columns, with their meanings
schemas.toml  these columns as data
look          `python -m pipeline.look`: any artefact as text
"""
