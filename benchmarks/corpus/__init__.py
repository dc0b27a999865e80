"""From the dump to the shards, and what a reader finds wrong in the text.

extract, extract_workloads, dumps  dump to Parquet, and the dumps that are made for it
corpus, stages, stages.toml, costs  time and memory of the stages, and costs.toml
rendered, page.toml                words that a reader of the rendered pages misses
"""
