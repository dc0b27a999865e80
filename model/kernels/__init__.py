"""Fast paths of the model, each with a plain oracle in the tests.

packing         how tokens lie, with padding and without
attention       attention over either, by what suits the device
attention_cpu   its forms for CPUs: products of matrices, sequence after sequence
attention_cuda  its forms for GPUs: a variable-length kernel over packed sequences
cross_entropy   the loss over large vocabularies, part by part
tied_tables     embedding tables whose gradients are added where they lie
"""
