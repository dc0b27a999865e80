"""The paper's five fine-tuning tasks (section 4), and entity linking.

task                  what a task offers; hyper-parameters
presets.toml          those of the presets, by task
io                    records, labels, spans, scores
ner                   named entity recognition
typing_and_relations  entity typing and relation classification
questions             cloze and extractive question answering
entities              Wikipedia's entities in any text: candidates, linking
finetuning            any task, from a data set to metrics
linker_training       training of entity linking, on documents with titles
serving               fine-tuned models in use

Commands, as `python -m tasks.predict`; `ner` and `entities` are two more:

predict, export                         answers of a fine-tuned model, and its folder for transformers
annotate                                Wikipedia's entities in a text
entity_typing, relation_classification  the scores of two files
cloze_qa, extractive_qa                 the same
"""
