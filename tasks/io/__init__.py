"""What the tasks read and write.

data_folder    the splits and the label file
records        JSON files, object by object
tables         rows of Parquet and Arrow files
excerpts       spans of characters, and the text around them
windows        long texts piece by piece, and their tokens
arguments      of the command lines, and their end
metrics        precision, recall, F1
score_command  the command that scores two files
probabilities  of classes, from logits
"""
