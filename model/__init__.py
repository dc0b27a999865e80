"""LUKE in PyTorch: the model, its pretraining, and its exchange with Hugging Face.

Read in this order: `config` (sizes), `embeddings`, `attention`, `encoder`, `heads` (the model), `shards` and
`batch` (the data), `train` and `pretrain` (the loop), `checkpoint` and `hf` (files).
"""
