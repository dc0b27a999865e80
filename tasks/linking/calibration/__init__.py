"""The certainty of a linker's answers, chosen by documents with titles.

outcomes     the linker's answers to mentions, beside the gold ones
calibration  weights, temperature, discount and threshold
"""
