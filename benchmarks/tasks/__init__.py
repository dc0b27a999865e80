"""Entity recognition beside transformers, and the costs of linking.

ner, ner_workloads          from words to logits
linking, linking_workloads  the command and the service
"""
