"""Fine-tuning tasks: one file holds one task, `finetune.py` trains any of them."""
