"""Data sets with an example in each record, compared with a file of predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tasks.io.records import Record

Example = TypeVar("Example")


@dataclass(frozen=True)
class Examples(Generic[Example]):
    """The examples of a file, in its order; each keeps the `record` that it was made from."""

    path: Path
    examples: tuple[Example, ...]


def check_mention(record: Record, name: str, text: str, span: tuple[int, int]) -> None:
    """Raises: ValueError naming the field where a mention has no characters but blanks."""
    if not text[slice(*span)].strip():
        raise record.error(f"{name} spans blanks alone; wanted a mention with at least one other character")


def check_same_inputs(gold: Sequence[Record], predictions: Sequence[Record], labels: Sequence[str]) -> None:
    """Raises: ValueError naming the first record of `predictions` that differs from that of `gold`.

    What is compared is every field that both have, except those named in `labels`.
    """
    for number, (wanted, found) in enumerate(zip(gold, predictions, strict=False), start=1):
        for name in sorted(set(wanted.values) & set(found.values) - set(labels)):
            if wanted.values[name] != found.values[name]:
                raise found.error(f"{name} is not that of {wanted.where}; example {number} must be the same")
    if len(gold) != len(predictions):
        raise ValueError(
            f"{predictions[-1].where}: {len(predictions)} predictions for {len(gold)} examples "
            f"(the last at {gold[-1].where}); wanted one for each"
        )
