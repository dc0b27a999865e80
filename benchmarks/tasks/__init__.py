"""Fine-tuning, its features and its predictions. A module `x_workloads` is what `x` measures in a process of its own.

tasks, splits               fine-tunings on real data, and one of them with the splits of its data
token_classification        the peer of entity recognition: transformers' token classifier
ner, ner_workloads          speed of entity recognition beside transformers
annotator                   speed of finding entities in texts
linking, linking_workloads  what linking costs
"""
