"""What pretrained entities are worth: probes that docs/explanation/evidence.md describes.

known_entities  held-out entities that a model names right among all
disambiguation  held-out links among the targets of their texts
ambiguous       the mentions of these links, and a file of them
words_around    the baseline of these: words around an entity's links
relatedness     how alike entities are, beside what people say
fine_tuning     what entities bring to tasks with few examples
linking         gold mentions among their candidates
gold_mentions   the documents of these, and the bag of words
"""
