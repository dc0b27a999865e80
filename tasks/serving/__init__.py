"""Fine-tuned models in use.

predict   answers to questions       export   folders for transformers
usage     what their users give      streams  lines in, answers out
"""
