"""Corpora that linking reads or writes; each is the work of a stage.

pages             BuildDocuments: pages of a dump as annotated documents
linked_sentences  BuildLinkedSentences: sentences whose names are all links
documents         documents of one's own, in blocks
linking           LinkDocuments: these documents with links, as pages of a dump
evaluation        EvaluateLinking: answers to held-out pages, and their scores
"""
