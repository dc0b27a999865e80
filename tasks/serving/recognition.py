"""Mentions in texts, as a fine-tuned model of entity recognition finds them: the option `--ner` of linking."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.lookup.mentions import MentionTable
from tasks.entities.candidates import FoundMention
from tasks.entities.linker import Linker
from tasks.finetuning.registry import TASKS
from tasks.serving.plain_text import NO_LANGUAGE, question
from tasks.serving.predict import Predictor, load


@dataclass(frozen=True)
class Recognizer:
    """Finds the entities of texts in a language, by whose rules they are parted into sentences."""

    predictor: Predictor
    language: str

    def __call__(self, texts: Sequence[str]) -> list[list[FoundMention]]:
        """The entities of each text, from left to right; they do not overlap."""
        questions = [question(f"text {number}", text, self.language) for number, text in enumerate(texts, 1)]
        return [
            [
                FoundMention(each["start"], each["end"], each["probability"], each["label"])
                for each in of["entities"]
            ]
            for of in self.predictor.answer(questions)
        ]


def add_recognition(link: argparse.ArgumentParser) -> None:
    """What finds mentions in place of the table's names."""
    link.add_argument(
        "--ner",
        type=Path,
        metavar="DIR",
        help="folder of a fine-tuned model of ner, which finds the mentions in place of the table's names",
    )
    link.add_argument(
        "--language",
        help="the wiki's code of the texts' language, by which --ner finds sentences (general rules: one that is not "
        f"known; {NO_LANGUAGE}: a line is one; default: that of the table)",
    )


def with_recognition(linker: Linker, options: argparse.Namespace) -> Linker:
    """The linker with the model of `--ner`, if any. Raises: ValueError for a folder of no such model."""
    if not options.ner:
        if options.language:
            raise ValueError("--language: only --ner DIR asks for sentences; give both, or neither")
        return linker
    found = open_recognizer(options.ner, options.language or "", linker.finder.table, device=options.device)
    predictor = replace(found.predictor, tokens_per_batch=options.tokens_per_batch)
    return replace(linker, recognize=replace(found, predictor=predictor))


def open_recognizer(folder: Path, language: str, table: MentionTable, *, device: str) -> Recognizer:
    """What finds mentions by a fine-tuned model of ner.

    Args:
        folder: of the model.
        language: of the texts; empty: that of the table.
        table: the mention table.
        device: as `load` takes it.

    Raises: ValueError for a folder of no such model, and where the package that finds sentences is missing.
    """
    predictor = load(folder, device=device)
    if predictor.task is not TASKS["ner"]:
        raise ValueError(f"--ner {folder}: no model of ner, which alone finds mentions; give one that is")
    language = language or table.manifest.facts["language"]
    question("--ner", "", language)  # the package is missed now, and not by each text
    return Recognizer(predictor, language)
