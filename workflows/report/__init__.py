"""The content of the report.

overview                          the first screen: what was kept, four figures, what to do next
corpus, training_curves           the corpus and the training
linking                           linked documents, and how good their links are
paper                             results beside the paper's, and what parts them
charts, drawing                   the charts: what each shows, and how it is drawn
rendering, templates              the page and its tables
several                           several runs side by side
"""
