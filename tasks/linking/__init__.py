"""Entity linking: the pages of Wikipedia that a text mentions; `python -m tasks.linking` is its command.

documents    texts with annotated mentions, in the formats of the field
candidates   the pages that a mention can stand for, and how common they are
certainty    scores to probabilities, and how well these say what is right
model        which candidate a mention stands for, by a pretrained model
linker       documents in, mentions with their pages out
recognition  mentions that a fine-tuned model of entity recognition finds
open         the one function that puts a linker together
calibration  the certainty that documents with titles call for
scores       answers beside gold documents
formats      answers as columns, wikitext and pages
service      answers over HTTP
corpora      corpora made with links: documents, sentences, linked documents, the evaluation
commands     link, serve, score, calibrate and convert
"""
