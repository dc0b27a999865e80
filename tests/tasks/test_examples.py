"""The example data are as large as their descriptions say, and whole."""

from typing import Any

import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import SPLITS, split_file
from tests.support.fine_tuned import EXAMPLES

SIZES = {
    "ner": [60, 20, 20], "entity_typing": [44, 20, 20], "relation_classification": [42, 20, 20],
    "cloze_qa": [20, 10, 10], "extractive_qa": [44, 20, 20],
}  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_examples_are_what_their_description_says(task: str) -> None:
    datasets: list[Any] = [TASKS[task].read(split_file(EXAMPLES / task, split)) for split in SPLITS]
    facts = [TASKS[task].describe(dataset) for dataset in datasets]
    of = [dataset.sentences if task == "ner" else dataset.examples for dataset in datasets]
    assert list(map(len, of)) == SIZES[task]
    assert sum(each.get("answers_not_at_offset", 0) for each in facts) == 0
    if task == "cloze_qa":
        for example in (example for examples in of for example in examples):
            assert {text for _, text in example.answers} < set(example.texts()), "there is a choice"
