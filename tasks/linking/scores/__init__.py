"""Scores of linked documents.

pairs           gold mentions beside answers, after redirects
disambiguation  how often gold mentions have the right title
scores          all scores of a file of answers
"""
