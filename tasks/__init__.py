"""The paper's five fine-tuning tasks (section 4), and entity linking.

task        what a task offers; hyper-parameters       io          records, labels, spans, scores
ner   typing_and_relations   questions   entities       the tasks, and Wikipedia's entities in any text
finetuning  any task, from a data set to metrics       serving     fine-tuned models in use
linker_training   of entity linking, on documents with titles

Commands: predict, export, annotate, entities, and for the scores of two files ner, entity_typing,
relation_classification, cloze_qa, extractive_qa.
"""
