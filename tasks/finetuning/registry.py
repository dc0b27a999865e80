"""The five tasks by their names, as the command line and the folders of results have them."""

from collections.abc import Mapping
from typing import Any

from tasks.ner import task as ner
from tasks.questions import cloze, extractive
from tasks.relations import relation_classification
from tasks.task import Task
from tasks.typing import entity_typing

TASKS: Mapping[str, Task[Any, Any]] = {
    "entity_typing": entity_typing.TASK,
    "relation_classification": relation_classification.TASK,
    "ner": ner.TASK,
    "cloze_qa": cloze.TASK,
    "extractive_qa": extractive.TASK,
}
