"""LUKE in PyTorch.

luke         the model: sizes, input, attention, heads
kernels      its fast paths
data         sequences to batches
training     the loop, checkpoints, several processes
pretraining  recipes, phases, evaluation
exchange     folders of transformers and of the authors' release
files        safetensors and JSON files that are complete or absent

The commands: `python -m model.pretrain`, `model.evaluation`, `model.hf check|export|push`, `model.sizes`.
"""
