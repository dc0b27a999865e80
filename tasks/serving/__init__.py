"""Fine-tuned models in use.

predict     predictions for new inputs
streams     lines or files in, answers out
plain_text  documents and their sentences
formats     JSON, CoNLL, brat, HTML
export      folders for transformers
"""
