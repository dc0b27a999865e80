"""What the tasks read and write.

records   examples and questions of JSON files and lines
excerpts  the part of a text that fits into the model
metrics   precision, recall, F1
score_command   the command line that scores files
"""
