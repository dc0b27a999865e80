"""Fits a linker's calibration on gold documents.

outcomes     the linker's answers to mentions, beside the gold ones
weights      weights of the model, links and contexts
calibration  temperature, discount and threshold
"""
