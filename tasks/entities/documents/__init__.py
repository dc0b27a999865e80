"""Documents whose mentions are annotated with titles or QIDs, in the formats of the field.

document    the record, and our JSON lines
json_lines  ZELDA's and ELEVANT's beside ours
aida        AIDA-CoNLL's columns
wned        WNED's XML with the folder RawText
reading     a file in any of these formats
answers     what `link` answered to such documents
"""
