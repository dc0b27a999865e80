"""From paragraphs to sequences of word and entity ids.

sentences           a text into sentences: what a splitter finds, corrected, never inside a link
boundaries          false sentence ends: abbreviations, ordinals
phrases             pieces of texts that mark no sentences (Thai, Lao, Khmer, Burmese)
tokenizer           words of RoBERTa's, BERT's and XLM-R's vocabularies
tokenizer_files     the files of a tokenizer, checked
tokenizer_training  a new one from a sample of the corpus
packing             sentences of a page into sequences
shards              sequences in Arrow files; figures about them
commonest           the prior baseline: the commonest entity of each held-out mention
data                abbreviations, by language
"""
