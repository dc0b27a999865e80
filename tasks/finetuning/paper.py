"""The 12 tables of the paper as data: 8 of results (in percent), 4 of hyper-parameters, with all their rows.

A test holds every cell against the paper's LaTeX. `figures` says what the paper reports for a task and a variant,
`fine_tuning` how it was trained, and `Table.measures` what a column of results stands for, so that figures of ours
can be laid beside it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

Cell = float | str | None
Line = tuple[str, *tuple[Cell, ...]]

DATASETS: Mapping[str, str] = {
    "entity_typing": "Open Entity",
    "relation_classification": "TACRED",
    "ner": "CoNLL-2003",
    "cloze_qa": "ReCoRD",
    "extractive_qa": "SQuAD",
}
METRICS: Mapping[str, str] = {"Prec.": "precision", "Rec.": "recall", "F1": "f1", "EM": "exact_match"}
VARIANT_OF_ROW: Mapping[str, str] = {
    "LUKE": "luke",
    "Entity-aware Attention": "luke",
    "Original Attention": "luke_original_attention",
    "LUKE w/o entity inputs": "luke_no_entities",
    "RoBERTa": "roberta",
    "RoBERTa w/ extra training": "roberta_extra_training",
}
_RESULT_COLUMN = re.compile(
    r"(?:(?P<dataset>.+) \()?(?:(?P<split>Dev|Test) )?(?P<metric>Prec\.|Rec\.|F1|EM)\)?"
)


@dataclass(frozen=True)
class Measure:
    """What is measured: `split` is dev or test, `metric` a value of METRICS."""

    task: str
    split: str
    metric: str


@dataclass(frozen=True)
class Row:
    """A system or a hyper-parameter, and a value for each column: a number, other text, None where it has "-"."""

    name: str
    values: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """`label` is the LaTeX label, `columns` has not the column of names; `task` where all results are of one."""

    number: int
    label: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    task: str

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What each column measures, on the test set where it names no split; empty for hyper-parameters."""
        tasks = {dataset: task for task, dataset in DATASETS.items()}
        matches = filter(None, map(_RESULT_COLUMN.fullmatch, self.columns))
        return tuple(
            Measure(
                tasks[match["dataset"]] if match["dataset"] else self.task,
                (match["split"] or "test").lower(),
                METRICS[match["metric"]],
            )
            for match in matches
        )

    def column(self, name: str) -> dict[str, Cell]:
        """The values of a column by the names of their rows."""
        index = self.columns.index(name)
        return {row.name: row.values[index] for row in self.rows}

    def is_best(self, row: Row, column: str) -> bool:
        """Whether the paper prints the cell in bold: the highest value of a column of results."""
        values = [value for value in self.column(column).values() if isinstance(value, float)]
        return bool(self.measures) and row.values[self.columns.index(column)] == max(values)


@dataclass(frozen=True)
class Figure:
    """A result of the paper in percent, and the label of the table that has it."""

    percent: float
    label: str


@dataclass(frozen=True)
class FineTuning:
    """How LUKE was fine-tuned on a task (Tables 11 and 12); `dev_scores` are in percent, by metric.

    The names are those of `tasks.task.Hyperparameters` where that has the value, too. What `tasks/ner/task.py` and its
    like repeat as their presets `base` and `large` is held against this by a test.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    minutes: int
    gpus: int
    dev_scores: Mapping[str, float]
    max_words: int
    learning_rate_decay: str
    warmup_ratio: float
    dropout: float
    weight_decay: float
    gradient_clipping: str
    betas: tuple[float, float]
    epsilon: float


def figures(task: str, variant: str) -> dict[tuple[str, str], Figure]:
    """What the paper reports for a task and a variant, by (split, metric); empty where it reports nothing.

    A figure that several tables have comes from the first. RoBERTa's are for many tasks those that others had
    published. Raises: ValueError for a task or a variant that the paper has not.
    """
    _check("task", task, DATASETS)
    _check("variant", variant, dict.fromkeys(VARIANT_OF_ROW.values()))
    found: dict[tuple[str, str], Figure] = {}
    for table in TABLES:
        for row in table.rows:
            if VARIANT_OF_ROW.get(row.name) != variant:
                continue
            for measure, value in zip(table.measures, row.values, strict=True):
                if measure.task == task and isinstance(value, float):
                    found.setdefault((measure.split, measure.metric), Figure(value, table.label))
    if variant == "luke":
        for metric, percent in fine_tuning(task).dev_scores.items():
            found.setdefault(("dev", metric), Figure(percent, FINE_TUNING.label))
    return found


def fine_tuning(task: str) -> FineTuning:
    """The hyper-parameters of a task. Raises: ValueError for a task that the paper has not."""
    _check("task", task, DATASETS)
    own, common = FINE_TUNING.column(DATASETS[task]), FINE_TUNING_COMMON.column("Value")
    scores = (score.split() for score in _text(own["Dev score"]).split("/"))
    return FineTuning(
        learning_rate=_number(own["Learning rate"]),
        batch_size=int(_number(own["Batch size"])),
        epochs=int(_number(own["Training epochs"])),
        minutes=int(_text(own["Training time"]).removesuffix("min")),
        gpus=int(_number(own["Number of GPUs"])),
        dev_scores={METRICS[metric]: float(percent) for percent, metric in scores},
        max_words=int(_number(common["Maximum word length"])),
        learning_rate_decay=_text(common["Learning rate decay"]),
        warmup_ratio=_number(common["Warmup ratio"]),
        dropout=_number(common["Dropout"]),
        weight_decay=_number(common["Weight decay"]),
        gradient_clipping=_text(common["Gradient clipping"]),
        betas=(_number(common["Adam β1"]), _number(common["Adam β2"])),
        epsilon=_number(common["Adam ε"]),
    )


def _check(kind: str, name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        raise ValueError(f"{kind} {name!r} is not in the paper; expected one of {', '.join(known)}")


def _number(cell: Cell) -> float:
    assert isinstance(cell, int | float), cell
    return cell


def _text(cell: Cell) -> str:
    assert isinstance(cell, str), cell
    return cell


def _table(
    number: int, label: str, title: str, columns: tuple[str, ...], lines: tuple[Line, ...], task: str = ""
) -> Table:
    rows = tuple(Row(name, tuple(values)) for name, *values in lines)
    return Table(number, label, title, columns, rows, task)


OPEN_ENTITY = _table(
    1,
    "tb:open-entity-results",
    "Entity typing: Open Entity",
    ("Prec.", "Rec.", "F1"),
    (
        ("UFET", 77.4, 60.6, 68.0),
        ("BERT", 76.4, 71.0, 73.6),
        ("ERNIE", 78.4, 72.9, 75.6),
        ("KEPLER", 77.2, 74.2, 75.7),
        ("KnowBERT", 78.6, 73.7, 76.1),
        ("K-Adapter", 79.3, 75.8, 77.5),
        ("RoBERTa", 77.6, 75.0, 76.2),
        ("LUKE", 79.9, 76.6, 78.2),
    ),
    "entity_typing",
)
TACRED = _table(
    2,
    "tb:tacred-results",
    "Relation classification: TACRED",
    ("Prec.", "Rec.", "F1"),
    (
        ("BERT", 67.2, 64.8, 66.0),
        ("C-GCN", 69.9, 63.3, 66.4),
        ("ERNIE", 70.0, 66.1, 68.0),
        ("SpanBERT", 70.8, 70.9, 70.8),
        ("MTB", None, None, 71.5),
        ("KnowBERT", 71.6, 71.4, 71.5),
        ("KEPLER", 70.4, 73.0, 71.7),
        ("K-Adapter", 68.9, 75.4, 72.0),
        ("RoBERTa", 70.2, 72.4, 71.3),
        ("LUKE", 70.4, 75.1, 72.7),
    ),
    "relation_classification",
)
CONLL = _table(
    3,
    "tb:ner-results",
    "Named entity recognition: CoNLL-2003",
    ("F1",),
    (
        ("LSTM-CRF", 91.0),
        ("ELMo", 92.2),
        ("BERT", 92.8),
        ("Akbik et al. (2018)", 93.1),
        ("Baevski et al. (2019)", 93.5),
        ("RoBERTa", 92.4),
        ("LUKE", 94.3),
    ),
    "ner",
)
RECORD = _table(
    4,
    "tb:record-results",
    "Cloze-style question answering: ReCoRD",
    ("Dev EM", "Dev F1", "Test EM", "Test F1"),
    (
        ("DocQA+ELMo", 44.1, 45.4, 45.4, 46.7),
        ("BERT", None, None, 71.3, 72.0),
        ("XLNet+Verifier", 80.6, 82.1, 81.5, 82.7),
        ("RoBERTa", 89.0, 89.5, None, None),
        ("RoBERTa (ensemble)", None, None, 90.0, 90.6),
        ("LUKE", 90.8, 91.4, 90.6, 91.2),
    ),
    "cloze_qa",
)
SQUAD = _table(
    5,
    "tb:squad-results",
    "Extractive question answering: SQuAD 1.1",
    ("Dev EM", "Dev F1", "Test EM", "Test F1"),
    (
        ("BERT", 84.2, 91.1, 85.1, 91.8),
        ("SpanBERT", None, None, 88.8, 94.6),
        ("XLNet", 89.0, 94.5, 89.9, 95.1),
        ("ALBERT", 89.3, 94.8, None, None),
        ("RoBERTa", 88.9, 94.6, None, None),
        ("LUKE", 89.8, 95.0, 90.2, 95.4),
    ),
    "extractive_qa",
)
ENTITY_INPUTS = _table(
    6,
    "tb:luke-ablation-study",
    "LUKE with and without entity inputs",
    ("CoNLL-2003 (Test F1)", "SQuAD (Dev EM)", "SQuAD (Dev F1)"),
    (
        ("LUKE w/o entity inputs", 92.9, 89.2, 94.8),
        ("LUKE", 94.3, 89.8, 95.0),
    ),
)
ATTENTION = _table(
    7,
    "tb:entity-aware-attention-study",
    "LUKE with the original and with entity-aware attention",
    (
        "Open Entity (Test F1)",
        "TACRED (Test F1)",
        "CoNLL-2003 (Test F1)",
        "ReCoRD (Dev EM)",
        "ReCoRD (Dev F1)",
        "SQuAD (Dev EM)",
        "SQuAD (Dev F1)",
    ),
    (
        ("Original Attention", 77.9, 72.2, 94.1, 90.1, 90.7, 89.2, 94.7),
        ("Entity-aware Attention", 78.2, 72.7, 94.3, 90.8, 91.4, 89.8, 95.0),
    ),
)
EXTRA_TRAINING = _table(
    8,
    "tb:roberta-wiki-study",
    "RoBERTa with and without extra training",
    ("CoNLL-2003 (Test F1)", "SQuAD (Dev EM)", "SQuAD (Dev F1)"),
    (
        ("RoBERTa w/ extra training", 92.5, 89.1, 94.7),
        ("RoBERTa", 92.4, 88.9, 94.6),
        ("LUKE", 94.3, 89.8, 95.0),
    ),
)
PRETRAINING = _table(
    9,
    "tb:pretraining-config",
    "Pretraining of LUKE",
    ("Value",),
    (
        ("Maximum word length", 512),
        ("Batch size", 2048),
        ("Peak learning rate", 1e-5),
        ("Peak learning rate (first 100K steps)", 5e-4),
        ("Learning rate decay", "linear"),
        ("Warmup steps", 2500),
        ("Mask probability for words", "15%"),
        ("Mask probability for entities", "15%"),
        ("Dropout", 0.1),
        ("Weight decay", 0.01),
        ("Gradient clipping", "none"),
        ("Adam β1", 0.9),
        ("Adam β2", 0.999),
        ("Adam ε", 1e-6),
    ),
)
ROBERTA_PRETRAINING = _table(
    10,
    "tb:roberta-pretraining-config",
    "Extra training of RoBERTa",
    ("Value",),
    (
        ("Maximum word length", 512),
        ("Batch size", 2048),
        ("Peak learning rate", 1e-5),
        ("Learning rate decay", "linear"),
        ("Warmup steps", 2500),
        ("Mask probability for words", "15%"),
        ("Dropout", 0.1),
        ("Weight decay", 0.01),
        ("Gradient clipping", "none"),
        ("Adam β1", 0.9),
        ("Adam β2", 0.999),
        ("Adam ε", 1e-6),
    ),
)
FINE_TUNING = _table(
    11,
    "tb:fine-tuning-hyperparam-config",
    "Fine-tuning, each task",
    ("Open Entity", "TACRED", "CoNLL-2003", "ReCoRD", "SQuAD"),
    (
        ("Learning rate", 1e-5, 1e-5, 1e-5, 1e-5, 15e-6),
        ("Batch size", 4, 32, 8, 32, 48),
        ("Training epochs", 3, 5, 5, 2, 2),
        ("Training time", "10min", "190min", "203min", "92min", "42min"),
        ("Number of GPUs", 1, 1, 1, 8, 8),
        ("Dev score", "78.5 F1", "72.0 F1", "97.1 F1", "90.8 EM/91.4 F1", "89.8 EM/95.0 F1"),
    ),
)
FINE_TUNING_COMMON = _table(
    12,
    "tb:fine-tuning-common-config",
    "Fine-tuning, all tasks",
    ("Value",),
    (
        ("Maximum word length", 512),
        ("Learning rate decay", "linear"),
        ("Warmup ratio", 0.06),
        ("Dropout", 0.1),
        ("Weight decay", 0.01),
        ("Gradient clipping", "none"),
        ("Adam β1", 0.9),
        ("Adam β2", 0.98),
        ("Adam ε", 1e-6),
    ),
)
TABLES = (
    OPEN_ENTITY,
    TACRED,
    CONLL,
    RECORD,
    SQUAD,
    ENTITY_INPUTS,
    ATTENTION,
    EXTRA_TRAINING,
    PRETRAINING,
    ROBERTA_PRETRAINING,
    FINE_TUNING,
    FINE_TUNING_COMMON,
)
