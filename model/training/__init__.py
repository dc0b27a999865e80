"""Training of any module, for pretraining and fine-tuning alike; it knows no model.

optimizer            AdamW, groups, schedule
loop                 training loop: gradient accumulation, update, non-finite losses
checkpoints          checkpoints: when one is due, written, found and loaded
ranks                several processes
metrics_log          training log
devices, peaks.toml  devices, what they have, and how fast they are at most
precision            mixed precision (bf16 autocast)
signals              a stop on SIGTERM, with a checkpoint
"""
