"""Fine-tuning of entity linking on documents with titles, after Yamada et al. (NAACL 2022).

inputs   documents to windows, with candidates and what is right     task   loss, answers and scores of these
training  a run from documents to a folder that `python -m tasks.entities link --model` takes
command   its command line
"""
