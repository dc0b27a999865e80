"""Fast paths of entity-aware attention, loss and tables; the tests hold each against a reference implementation.

packing         batch layouts: padded or packed
attention       chooses the attention kernel by device and layout
attention_cpu   attention on CPUs: products of matrices, sequence after sequence
attention_cuda  attention on GPUs: a variable-length kernel over packed sequences
cross_entropy   the loss over large vocabularies, part by part
tied_tables     embedding tables whose gradients are added where they lie
"""
