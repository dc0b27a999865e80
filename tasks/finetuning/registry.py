"""The five tasks by their names, as the command line and the folders of results have them."""

from collections.abc import Mapping
from typing import Any

from tasks.ner import task as ner
from tasks.questions import cloze as cloze_qa
from tasks.questions import extractive
from tasks.relations import relation_classification
from tasks.task import Task
from tasks.typing import entity_typing

TASKS: Mapping[str, Task[Any, Any]] = {
    "entity_typing": entity_typing,
    "relation_classification": relation_classification,
    "ner": ner,
    "cloze_qa": cloze_qa,
    "extractive_qa": extractive,
}
