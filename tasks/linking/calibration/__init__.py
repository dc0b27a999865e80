"""The certainty of a linker's answers, chosen by documents with titles.

outcomes     what a linker says of mentions, and what is right
weights      how much a model, links and contexts count
calibration  temperature, discount and threshold
"""
