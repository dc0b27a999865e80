"""Luigi parameters by concern: a stage inherits those that it and its upstream stages use.

`Stage.clone(Upstream)` hands common parameters on. A parameter that a stage lacks would take its default upstream of it
whatever the user says, so each class here inherits those of what comes before it; a test holds this for every stage.

engines      worker processes, Beam, Spark
corpus       from the dump to the mention table
sequences    the tokenizer and the sequences
pretraining  the recipe, and its computation
linking      documents, and the evaluation of a linker
fine_tuning  fine-tuning, the search and the grid
"""
