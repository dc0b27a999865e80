"""Benchmarks that measure the project beside others, or ask a model what it knows.

corpus, model, tasks, evidence  the scripts, with the workloads that they run in processes of their own
harness                         the parts that all scripts share
README.md, results              what each one counts, and what came out
LOG.md                          the diary
"""
