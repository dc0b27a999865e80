"""Training beside transformers: on the CPU, and on one GPU.

step, workloads                 forward, losses, backward
pretrain, pretrain_workloads    a whole step of pretraining
gpu, gpu_workloads, gpu_tables  all of it on one GPU
multilingual_base               a small multilingual model to start from
"""
