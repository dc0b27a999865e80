"""Cloze-style and extractive question answering (sections 4.4 and 4.5 of the paper).

cloze, extractive   the tasks
windows   long texts in overlapping pieces     answers   texts of answers and their scores
"""
