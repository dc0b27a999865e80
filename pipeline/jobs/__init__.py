"""The stages' algorithms on the two engines: one file a stage, whose function `build` is read from top to bottom.

read_templates, extract_pages, build_sequences  on Beam, block by block
tables                                          on Spark, joins and counts over the extracted pages
supervisor  runs a job over blocks in a process of its own, and isolates a page that kills a worker
beam        what that process does: the blocks on a Beam runner
spark       Spark's session, reading, and writing parts that do not depend on the cluster
"""
