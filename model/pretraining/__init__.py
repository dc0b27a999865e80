"""Pretraining (sections 3.3, 3.4 and the appendix of the paper).

recipes, help.toml  hyper-parameters as data, what each is, and a preset with others over it
phases              the phases, step by step
run                 one run, from a folder of sequences to a model
loader              draws a step's sequences, masks them, cuts micro-batches
throughput          speed against the machine's peak
evaluation          held-out figures
ranking             losses and ranks of masked words and entities; metrics from them
start               initial weights: from scratch or a base model
update              new entities for a finished model
"""

# Rises where the same arguments give other bytes: a finished run and a checkpoint are recognised by it.
VERSION = 16
