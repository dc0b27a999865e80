"""Texts of one's own: linked as the pages of a dump are, so that sequences can be made from them.

documents   a folder of JSON lines and Parquet, in blocks
linking     documents in, paragraphs with links out
"""
