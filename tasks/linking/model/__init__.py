"""The candidate that a mention stands for, by a pretrained model.

entity_model  the model, and its rows for a table's pages and for those that it does not know
answers       local and global disambiguation: windows of mentions, scores, softmax
"""
