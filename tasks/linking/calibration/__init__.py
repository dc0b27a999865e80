"""How sure a linker may say that it is, chosen by documents with titles.

outcomes     what a linker says of mentions, and what is right
weights      how much a model, links and contexts count
calibration  temperature, discount and threshold
"""
