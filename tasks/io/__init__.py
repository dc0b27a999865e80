"""Files that the tasks read and write.

data_folder    the splits and the label file
records        JSON files, object by object; examples of typing and relations
tables         rows of Parquet and Arrow files
windows        long texts piece by piece, spans of characters, and their tokens
arguments      of the command lines, and their end
options.toml   what the command lines take
metrics        precision, recall, F1
probabilities  of classes, from logits
annotations    Wikipedia's entities in texts, by a mention table that numbers them as the model does
"""
