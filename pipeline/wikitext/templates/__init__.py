"""Templates that show text: what a reader sees of `{{convert|5|km|mi}}`, by rules that are data.

table      which rule a template's name has in a wiki (pipeline/mediawiki/data/templates.toml)
rules      a rule, read once: text with a template's parameters in it
functions  rules that no pattern says: dates, languages, ships, numbers
units      measures and their conversion
losses     what templates without a rule cost, by name
bodies     a template's own page in the dump as a rule
"""
