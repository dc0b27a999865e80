"""Entity linking: the pages of Wikipedia that a text mentions; `python -m tasks.linking` is its command.

documents    texts with annotated mentions, in the formats of the field
candidates   candidate pages of a mention and their priors (commonness)
guesses      pages of longer mentions, of other forms of a mention, by its initials and words, and of its parts
own          entities of the user's own, beside the dump's pages
certainty    applies a calibration: scores to probabilities; calibration error; its file
model        local and global disambiguation by a pretrained model
linker       documents in, mentions with their pages out
recognition  mentions that a fine-tuned model of entity recognition finds
open         the one function that puts a linker together
calibration  fits a calibration on gold documents
scores       answers beside gold documents
formats      answers as wikitext and pages
service      answers over HTTP
corpora      corpora made with links: documents, sentences, linked documents, the evaluation
options      options of the commands, and the linker that they describe
inputs       documents of files and of stdin
"""
