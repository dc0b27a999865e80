"""Entity recognition beside transformers, the costs of linking, and its service among clients.

ner, ner.toml, ner_workloads  from words to logits
linking, linking_workloads    the command
serving                       the service, whose clients are those of tests/support/clients.py
"""
