"""The content of the report.

paper                          results beside the paper's, and what parts them
corpus, training_curves        the corpus and the training
linking                        linked documents, and how good their links are
figures, rendering, templates  how it is drawn
"""
