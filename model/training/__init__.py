"""Training of any module, for pretraining and fine-tuning alike; it knows no model.

optimizer    AdamW, groups, schedule
loop         steps, gradients, finite or not
checkpoints  saved and found again
ranks        several processes
metrics_log  figures in files
precision    of matrix products
signals      SIGTERM
"""
