"""Work of the linking stages: corpora with links, and the evaluation.

pages             BuildDocuments: pages of a dump as annotated documents
documents         a user's documents, in blocks
linking           LinkDocuments: these documents with links, as pages of a dump
evaluation        EvaluateLinking: answers to held-out pages, and their scores
folder            BuildLinker: all parts of a linker in one folder
"""
