"""Fine-tuning of any task.

prepare   data, model and head of a run      finetune  one run, to a folder of results
loop      epochs and checkpoints             variants  the paper's baselines and ablations
paper     the paper's tables, as data
"""
