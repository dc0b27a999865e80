"""Named entity recognition (section 4.3 of the paper).

task           the task, from examples to scores
columns        CoNLL files
spans          spans, greedy decoding of overlaps, tag schemes
words          texts into words
conllu         CoNLL-U, and other numbered words
token_records  sentences in JSON lines and tables
context        words around a sentence
classifier     the head over spans
threshold      decision threshold, tuned on dev
"""
