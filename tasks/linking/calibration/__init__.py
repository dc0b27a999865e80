"""The certainty of a linker's answers, chosen by documents with titles.

outcomes     the linker's answers to mentions, beside the gold ones
weights      weights of the model, links and contexts
calibration  temperature, discount and threshold
"""
