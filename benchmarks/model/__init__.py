"""Training: a step, a pretraining, and all of it on one GPU."""
