"""The stages' algorithms on the two engines, each to be read from its function `build`, and what runs them.

read_templates   the templates that articles show, on Beam
extract_pages    pages to paragraphs with links, on Beam, block by block
build_sequences  paragraphs to sequences, on Beam, block by block
merge_sequences  the sequences of several wikis in one folder, on no engine
tables           joins and counts over all pages, on Spark

supervisor       runs a job over blocks in a process of its own, and isolates a page that kills a worker
beam             the main program of that process: the blocks on a Beam runner
spark_session    Spark's session: settings, progress, errors, end
spark_parts      reading tables, and writing them in parts that do not depend on the cluster
spark_conf       Spark's settings of its log, and those that tables are computed with

FetchDump and FetchQids need no engine (`pipeline/dump`), and TrainTokenizer none (`pipeline/sequences`).
A `build` writes into the stage's `folder`, on Beam by `run` over blocks, and names inputs in errors as the user did.
"""
