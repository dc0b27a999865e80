"""From the dump to the shards. A module `x_workloads` is what `x` measures inside of a process of its own.

corpus, corpus_workloads                    time and memory of every stage, beside LUKE's own method
lukes_method                                that method, told anew from its public code
stages, dumps                               what `corpus` runs, and on which dumps
full_dump                                   what the full English dump takes
costs, planned                              a result as costs of `Plan`, and what `Plan` says beside a result
extract, extract_workloads, extract_report  speed of ExtractPages beside other programs
text_quality, quality_workloads, faults     what a reader finds wrong in extracted text
tokenizer_training, tokenizer_workloads     TrainTokenizer alone
page_props                                  speed of our reader of page_props, beside mwsql's
"""
