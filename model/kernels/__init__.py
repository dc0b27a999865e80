"""Fast paths of the model, each with a plain oracle in the tests.

packing         tokens without padding, and which attention kernel runs
attention_cpu   attention by products of matrices, sequence after sequence, for CPUs
attention_cuda  attention of packed sequences by a GPU's variable-length kernel
cross_entropy   the loss over large vocabularies, part by part
tied_tables     embedding tables whose gradients are added where they lie
"""
