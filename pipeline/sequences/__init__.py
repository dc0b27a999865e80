"""From paragraphs to sequences of word and entity ids.

sentences           a text into sentences: what a splitter finds, corrected, never inside a link
boundaries          which of the ends that it finds are none
phrases             pieces of texts that mark no sentences (Thai, Lao, Khmer, Burmese)
tokenizer           words of RoBERTa's and BERT's vocabularies
tokenizer_files     the files of a tokenizer, checked
tokenizer_training  a new one from a sample of the corpus
packing             sentences of a page into sequences
shards              sequences in Arrow files; what these hold, in figures
commonest           labels that the mention table would give to held-out mentions
data                abbreviations, by language
"""
