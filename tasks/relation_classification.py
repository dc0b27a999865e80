"""Scores of relation classification: `python -m tasks.relation_classification score GOLD PREDICTIONS` prints JSON.

GOLD is a file of TACRED or of SemEval-2010 task 8, PREDICTIONS the same examples with `prediction` or `relation`.
"""

from tasks.io.score_command import score_command
from tasks.typing_and_relations.relation_classification import score_files

OPTIONS = {"--negative-label": ("negative", "the class that is not scored; else no_relation or Other")}

main = score_command("tasks.relation_classification", score_files, OPTIONS)

if __name__ == "__main__":
    main()
