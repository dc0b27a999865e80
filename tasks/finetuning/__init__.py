"""Fine-tuning of any task.

registry     the tasks by name
variants     the paper's baselines and ablations
entities     the entity table of the model
prepare      data, model and inputs of a run
epochs       epochs, micro-batches, dev scores, checkpoints
inference    logits of features
results      the folder that a run leaves
paper        the paper's tables, from paper.json
paper.json   their figures
finetune     one run, from a data set to metrics
"""

# Rises where the same arguments give other bytes: a finished run and a checkpoint are recognised by it.
VERSION = 20
TOKENIZER = "tokenizer"  # in the folder of a fine-tuned model: its tokenizer's files
