"""Scores of entity recognition: `python -m tasks.ner score GOLD PREDICTIONS` prints JSON.

Both have the same words, each in one of the formats that FineTune reads. The predictions of FineTune are such a file.
"""

from tasks.io.score_command import score_command
from tasks.ner.task import score_files

OPTIONS = {
    "--tag-column": (
        "tag_column",
        "where GOLD has the tags: a column's number (from 1, or -1 for the last) or its name in the first line, a "
        "field of JSON or a table, a key in MISC of CoNLL-U; else the last column, ner_tags or NER",
    ),
    "--predicted-column": ("predicted_column", "the same of PREDICTIONS"),
}

main = score_command("tasks.ner", score_files, OPTIONS)

if __name__ == "__main__":
    main()
