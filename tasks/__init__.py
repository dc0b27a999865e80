"""Fine-tuning tasks, and models in use.

task                                  the protocol: what a task offers
io                                    files, metrics, the command that scores
ner, typing_and_relations, questions  the five tasks
entities                              Wikipedia's entities in any text
finetuning                            training of any task
serving                               answers, and export to transformers

The commands: `python -m tasks.predict`, `tasks.export`, `tasks.annotate`, and `python -m tasks.TASK score` of each task.
"""
