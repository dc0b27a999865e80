"""Fine-tuning and calibration of entity linking on documents with titles.

inputs   documents to windows, with candidates and what is right     task   loss, answers and scores of these
training  after Yamada et al. (NAACL 2022): a run from documents to a folder that `link --model` takes
command   its command line
calibration  how sure a linker may say it is     certainty  its command line, and the options that linking has of it
"""
