"""Results beside the paper's, and their differences.

comparison           the paper's tables of results, with ours below; the list of all experiments
caveats, texts.toml  the differences of our results from the paper's
"""
