"""Training. A module `x_workloads` is what `x` measures inside of a process of its own.

step, workloads                 a training step beside transformers'
pretrain, pretrain_workloads    a whole run: tokens a second, loader, checkpoints
ranks, ranks_workloads          gradients of several processes beside torch's
gpu, gpu_workloads, gpu_tables  what `make gpu` runs on a GPU
estimate                        what a GPU would take, counted without one
"""
