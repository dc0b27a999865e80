"""Scores of entity typing: `python -m tasks.entity_typing score GOLD PREDICTIONS` prints JSON.

GOLD is a file of Open Entity, PREDICTIONS the same examples with their types in `prediction`, `labels` or `y_str`.
"""

from tasks.io.score_command import score_command
from tasks.typing_and_relations.entity_typing import score_files

OPTIONS = {"--labels": ("labels", "file with the types that are scored; else the nine general ones")}

main = score_command("tasks.entity_typing", score_files, OPTIONS)

if __name__ == "__main__":
    main()
