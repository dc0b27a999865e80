"""Documents with links: texts of one's own, linked so that sequences can be made from them, and a dump's pages.

documents         a folder of JSON lines and Parquet, in blocks
linking           documents in, paragraphs with links out
pages             a dump's pages in, annotated documents out
linked_sentences  a dump's pages in, sentences whose names are all links out
evaluation        annotated documents in, what a model answers to them and how often that is right out
"""
