"""Question answering (sections 4.4 and 4.5 of the paper).

cloze, extractive                the tasks: their inputs, heads, decoding and scores
cloze_format, extractive_format  the files of ReCoRD and SQuAD
extractive_input                 questions with the windows of their passages as batches
windows                          tokens of both, and how they are joined
answers                          texts, files of predictions, the official scores
"""
