"""The paper's 4 tables of hyper-parameters with the values that our experiments really used."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from model.luke.config import PRESETS
from model.pretraining.recipes import RANDOM, TITLES, values_text
from tasks.finetuning.paper import (
    DATASETS,
    FINE_TUNING,
    FINE_TUNING_COMMON,
    METRICS,
    PRETRAINING,
    ROBERTA_PRETRAINING,
    Table,
    fine_tuning,
)
from tasks.finetuning.paper import Cell as Value
from workflows.report.paper.caveats import CLASSIFIER_RATE, DONE, NOTES, Cell, common_values, used_values

RowType = TypeVar("RowType")
Used = Sequence[tuple[str, Value]]
"""The values of one hyper-parameter, each with what used it."""
NOT_RECORDED = ("Training time", "Number of GPUs")
BEGINNINGS = {TITLES: "as what their titles say", RANDOM: "at random"}
DEV_SCORE = "Dev score"  # a result and no setting


@dataclass(frozen=True)
class SettingRow:
    """A hyper-parameter: for each column the paper's value, ours ("-" where there is none), and if they differ."""

    name: str
    paper: tuple[str, ...]
    ours: tuple[str, ...]
    differs: tuple[bool, ...]


@dataclass(frozen=True)
class ShownTable(Generic[RowType]):
    """A table of the paper with ours: `headers` are what stands above its columns."""

    number: int
    label: str
    title: str
    columns: tuple[str, ...]
    headers: tuple[str, ...]
    rows: tuple[RowType, ...]
    notes: tuple[str, ...]


SettingTable = ShownTable[SettingRow]


def shown_table(
    table: Table, headers: Sequence[str], rows: Iterable[RowType], notes: Sequence[str]
) -> ShownTable[RowType]:
    """A table of the paper with these headers, rows and notes."""
    named = (table.number, table.label, table.title, table.columns)
    return ShownTable(*named, tuple(headers), tuple(rows), tuple(notes))


def setting_tables(cells: Sequence[Cell], pretraining: Mapping[str, Any]) -> tuple[SettingTable, ...]:
    """The 4 tables, from the cells that are done and the configurations of our pretrainings by stage.

    A configuration is a pretraining.json with its config.json as `model`, and `max_words` of a sequence.
    """
    done = [cell for cell in cells if cell["state"] == DONE and "hyperparameters" in cell["configuration"]]
    used_by_all: dict[str, list[Used]] = {
        name: [[(cell["task"], used_values(cell)[name]) for cell in done]]
        for name in FINE_TUNING_COMMON.column("Value")
    }
    return (
        pretraining_table(PRETRAINING, pretraining.get("Pretrain")),
        pretraining_table(ROBERTA_PRETRAINING, pretraining.get("PretrainRoberta")),
        _setting_table(FINE_TUNING, _used_by_tasks(done), [NOTES["not_recorded"]]),
        _setting_table(FINE_TUNING_COMMON, used_by_all, []),
    )


def pretraining_table(table: Table, ours: Mapping[str, Any] | None) -> SettingTable:
    """The table of a pretraining; `ours` is None where the pipeline's own weights were not used."""
    if ours is None:
        nothing = {name: [[("", None)]] for name in table.column("Value")}
        return _setting_table(table, nothing, ["The pipeline's own pretraining was not used."])
    recipe, model = ours["recipe"], ours["model"]
    values = {
        "Maximum word length": ours["max_words"],
        "Batch size": recipe["batch_size"],
        "Peak learning rate": recipe["learning_rate"][-1],
        "Peak learning rate (first 100K steps)": recipe["learning_rate"][0],
        "Mask probability for words": f"{100 * recipe['masked_word_share']:g}%",
        "Mask probability for entities": f"{100 * recipe['masked_entity_share']:g}%",
        **common_values(recipe, model),
    }
    used: dict[str, list[Used]] = {name: [[("", value)]] for name, value in values.items()}
    used["Warmup steps"] = [[(f"phase {n}", steps) for n, steps in enumerate(recipe["warmup_steps"], 1)]]
    steps = " + ".join(f"{count:,}" for count in recipe["steps"])
    changes = f" with {values_text(ours['changes'])}" if ours["changes"] else ""
    large = PRESETS["large"]
    start = BEGINNINGS[recipe["entity_start"]]
    note = (
        f"Ours: preset {ours['preset']}{changes}, {steps} steps, {model['num_hidden_layers']} layers of "
        f"{model['hidden_size']:,} units, {model['entity_vocab_size']:,} entities that begin {start}. "
        f"The paper's: 200,000 steps, {large.num_hidden_layers} layers of {large.hidden_size:,} units, "
        f"{large.entity_vocab_size:,} entities for LUKE."
    )
    return _setting_table(table, used, [note])


def _used_by_tasks(done: Sequence[Cell]) -> dict[str, list[Used]]:
    """For each row of Table 11 and each task what the variants used."""
    cells = [[cell for cell in done if cell["task"] == task] for task in DATASETS]
    used: dict[str, list[Used]] = {
        name: [[(cell["variant"], used_values(cell)[name]) for cell in of_task] for of_task in cells]
        for name in ("Batch size", "Training epochs")
    }
    used["Learning rate"] = [
        [(cell["variant"], _rates(used_values(cell))) for cell in each] for each in cells
    ]
    used |= {name: [[] for _ in DATASETS] for name in NOT_RECORDED}
    return used | {DEV_SCORE: [[("luke", _dev_scores(task, done))] for task in DATASETS]}


def _rates(used: Mapping[str, Any]) -> Value:
    """The learning rate, and the classifier's where it has another (the paper's has not)."""
    rate, head = used["Learning rate"], used[CLASSIFIER_RATE]
    return rate if rate == head else f"{number_text(rate)}, classifier {number_text(head)}"


def _dev_scores(task: str, done: Sequence[Cell]) -> str | None:
    """LUKE's scores on dev as the paper prints them, means over the seeds that are done."""
    cells = [cell["metrics"]["dev"] for cell in done if (cell["task"], cell["variant"]) == (task, "luke")]
    if not cells:
        return None
    names = [score.split()[1] for score in str(fine_tuning(task)[DEV_SCORE]).split("/")]
    return "/".join(
        f"{100 * statistics.fmean(scores[METRICS[name]] for scores in cells):.1f} {name}" for name in names
    )


def _setting_table(table: Table, used: Mapping[str, Sequence[Used]], notes: Sequence[str]) -> SettingTable:
    rows = []
    for row in table.rows:
        ours = [common_text(each) for each in used[row.name]]
        differs = [
            row.name != DEV_SCORE and any(value is not None and value != paper for _, value in each)
            for paper, each in zip(row.values, used[row.name], strict=True)
        ]
        rows.append(SettingRow(row.name, tuple(map(number_text, row.values)), tuple(ours), tuple(differs)))
    return shown_table(table, table.columns if len(table.columns) > 1 else ["paper"], rows, notes)


def common_text(used: Used) -> str:
    """One value where all used the same; else each with those that used it. "-" where none did."""
    users: dict[Value, dict[str, None]] = {}
    for user, value in used:
        if value is not None:
            users.setdefault(value, {})[user] = None
    if len(users) < 2:
        return next(map(number_text, users), "-")
    return "; ".join(f"{number_text(value)} ({', '.join(names)})" for value, names in users.items())


def number_text(value: Value) -> str:
    """A number as the paper prints it: 1e-5, 0.06, 512; text as it is; "-" for none."""
    if value is None or isinstance(value, str | int):
        return "-" if value is None else str(value)
    digits, _, exponent = f"{value:e}".partition("e")
    if value and abs(value) < 0.001:
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:g}"
