"""Wikipedia's entities in any text, and entity linking; `python -m tasks.entities` is its command.

annotator       names of a mention table, found and resolved
annotations     the same as input of extractive question answering
documents       texts with annotated mentions, in the formats of the field
candidates      what a mention can stand for, and how common that is
disambiguation  which of these it is, by a pretrained model
certainty       scores to probabilities, and how well these say what is right
linker          documents in, mentions with their pages out
scores          of what comes out
score_command   score and convert, on the command line
"""
