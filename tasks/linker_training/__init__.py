"""Fine-tuning and calibration of entity linking on documents with titles.

inputs               documents to windows, with candidates and what is right
task                 loss, answers and scores of these
training             after Yamada et al. (NAACL 2022): a run from documents to a folder that `link --model` takes
outcomes             what a linker says of mentions, and what is right
calibration          how sure a linker may say it is
weights              how much a model, links and contexts count for that
training_command     the command line of training
calibration_command  that of calibration, and the options of certainty that linking has
"""
