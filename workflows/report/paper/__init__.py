"""Results beside the paper's, and what parts them.

comparison   the paper's tables of results, with ours below
settings     its tables of hyper-parameters, with ours beside
caveats      what sets a result of ours apart
experiments  the list of all experiments, each with its scores
"""
