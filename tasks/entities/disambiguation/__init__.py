"""Which of its candidates a mention stands for, by a pretrained model.

entity_model  the model, and the rows of its entities for the titles of a mention table
titles        rows for pages that it does not know
windows       documents as inputs, with mentions as questions
answers       what the model says, locally or globally
"""
