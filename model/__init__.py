"""LUKE in PyTorch.

luke         the model: sizes, input, attention, heads
kernels      its fast paths
data         sequences to batches
training     the loop, checkpoints, several processes
pretraining  recipes, phases, evaluation
exchange     folders of transformers and of the authors' release
files        safetensors and JSON files that are complete or absent

Commands, as `python -m model.pretrain`:

pretrain     pretraining
evaluation   held-out figures of a pretrained model
hf           check, export and push: folders of transformers
sizes        how many parameters each part has
"""
