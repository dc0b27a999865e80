"""Relation classification (TACRED, SemEval-2010 task 8, Wiki80).

relation_format          files to examples
relation_classification  the task
"""
