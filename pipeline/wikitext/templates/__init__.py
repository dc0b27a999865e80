"""Templates that show text: what a reader sees of `{{convert|5|km|mi}}`, by rules that are data.

table      the rule of a template's name in a wiki (pipeline/mediawiki/data/templates.toml)
rules      a rule, read once: text with a template's parameters in it
functions  rules that need code: dates, languages, ships, numbers
units      measures and their conversion
guess      templates without a rule whose argument reads as running text
losses     words and links lost to templates without a rule, by name
bodies     a template's own page in the dump as a rule
"""
