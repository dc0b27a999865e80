"""LUKE in PyTorch: the model, its pretraining, and its exchange with Hugging Face.

Read in this order: `config` (sizes), `embeddings`, `attention`, `layout` and `products` (what computes it),
`encoder`, `heads` and `losses` (the model), `shards` and `batch` with its `checks` (the data), `recipes`, `train`,
`training` and `pretrain` (the loop), `loader` and `ranks` (its processes), `resume` and `stopping`, `held_out`,
`scores` and `evaluation` (figures of pages that it never saw), `record`, `speed`, `watch` and `needs` (what a user
sees of it), `files` and `checkpoint` (folders of models), `hf` (the key table of the exchange), `hf_export`,
`hf_check`, `original`, `fine_tuned` (what is exchanged).
"""
