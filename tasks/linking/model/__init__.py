"""The candidate that a mention stands for, by a pretrained model.

entity_model  the model, and its rows for a table's pages
titles        rows for pages that it does not know
windows       a document's mentions in inputs of the model
answers       local and global disambiguation: scores, softmax
"""
