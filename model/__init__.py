"""LUKE in PyTorch.

luke         the model: sizes, input, attention, heads
kernels      its fast paths
data         sequences to batches
training     the loop, checkpoints, several processes
pretraining  recipes, phases, evaluation
presets      run files of the project
hf           folders of transformers
files        safetensors and JSON files that are complete or absent

Commands, as `python -m model.pretrain`:

pretrain     pretraining
evaluation   held-out figures of a pretrained model
sizes        how many parameters each part has
"""

import os

# Torch then takes its memory in pages of 2 MiB. A large tensor is new memory in each step, and by the usual pages of
# 4 KiB that costs a CPU 2 to 13 % of the step (benchmarks/results/2026-11-28-large-pages.txt). Torch reads this when it
# first allocates; 0 turns it off.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
