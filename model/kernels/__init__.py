"""Fast paths of entity-aware attention, loss and tables; the tests hold each against a reference implementation.

packing         the layout of packed tokens
attention_cpu   attention on CPUs: products of matrices, sequence after sequence
attention_cuda  attention on GPUs: a variable-length kernel over packed sequences
tables          large tables: the loss over them, part by part, and gradients that are added where they lie
narrow          layers in bf16 on GPUs: copies of weights, products, and what stands between them
triton_kernels  the kernels of `narrow`, in Triton
"""
