"""Pretraining (sections 3.3, 3.4 and the appendix of the paper).

recipes        hyper-parameters as data
recipes.toml   those of the presets
configuration  a preset with a recipe over it
phases         the phases, step by step
run            one run, from a folder of sequences to a model
loader         what is in a step's batch
throughput     speed against the machine's peak
evaluation     held-out figures
ranking        ranks and shares of right answers
start          first weights
"""
