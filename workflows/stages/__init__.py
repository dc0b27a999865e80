"""The stages, in the order in which data pass through them.

pages, tables, sequences  from the dump to sequences
pretraining, fine_tuning  models, and the search for settings
languages                 the pretrained model in each of several languages
task_stage                what stages of fine-tuning have in common
linking                   entity linking: documents, training, evaluation
experiments, report       the grid and its page
"""
