"""Mentions in texts, as a fine-tuned model of entity recognition finds them."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks.finetuning.registry import TASKS
from tasks.linking.candidates import DetectedMention
from tasks.serving.plain_text import question
from tasks.serving.predict import Predictor, load


@dataclass(frozen=True)
class Recognizer:
    """Finds the entities of texts in a language, by whose rules they are parted into sentences."""

    predictor: Predictor
    language: str
    # The tokenizer remembers words, and forgets some: two threads of the service have their turns.
    turn: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, texts: Sequence[str]) -> list[list[DetectedMention]]:
        """The entities of each text, from left to right; they do not overlap."""
        questions = [question(f"text {number}", text, self.language) for number, text in enumerate(texts, 1)]
        with self.turn:
            answers = self.predictor.answer(questions)
        return [
            [DetectedMention(each["start"], each["end"], each["probability"], each["label"]) for each in of["entities"]]
            for of in answers
        ]


def open_recognizer(folder: Path, language: str, device: str, tokens_per_batch: int) -> Recognizer:
    """Return what finds mentions by a fine-tuned model of ner.

    Raises: ValueError for a folder of no such model, and where the package that finds sentences is missing.
    """
    predictor = load(folder, device=device)
    if predictor.task is not TASKS["ner"]:
        raise ValueError(f"--ner {folder}: no model of ner, which alone finds mentions; give one that is")
    question("--ner", "", language)  # the package is missed now, and not by each text
    return Recognizer(replace(predictor, tokens_per_batch=tokens_per_batch), language)
