"""The stages, in the order in which data pass through them.

dump, pages, tables, sequences               from the dump to sequences
pretraining, fine_tuning, tuning             models
experiments, report                          the grid and its page
"""
