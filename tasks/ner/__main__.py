"""Scores of entity recognition: `python -m tasks.ner score GOLD PREDICTIONS` prints JSON.

Both are column files with the same words; the tags stand in their last columns.
"""

from tasks.io.score_command import score_command
from tasks.ner.task import score_files

main = score_command("tasks.ner", score_files)

if __name__ == "__main__":
    main()
