"""Writes a fine-tuned model for transformers: `python -m tasks.export MODEL_DIR OUTPUT`.

The folder loads with the class of the task; without entities with RoBERTa's or BERT's, the classifier beside it.
"""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from model.files import CONFIG, read_json, read_optional, write_aside
from model.hf.card import fine_tuned_card
from model.hf.export import SECOND_MASK, SPECIAL_TITLES, checked_vocabulary, entity_rows
from model.hf.fine_tuned import FineTuned, export_fine_tuned
from model.luke.config import PAD_ENTITY
from pipeline.sequences.tokenizer import ByteLevelBPE, Unigram, WordPiece
from tasks.finetuning import TOKENIZER
from tasks.finetuning.results import METRICS
from tasks.questions import extractive
from tasks.serving.predict import THEIR_MARKERS, Predictor, load

WORDS_OF_MARKERS = ("@", "#")  # what <ent> and <ent2> start from where the task has no such marker


def export(folder: Path, output: Path, *, entity_vocab: Path | None = None) -> None:
    """Exports a folder that fine-tuning wrote; `output` is new or empty, and appears whole or not at all.

    `entity_vocab` is the vocabulary of the pretraining, for a model that takes Wikipedia's entities. Raises:
    ValueError where it is missing, for a model that transformers has not, and where `output` holds something.
    """
    check_output(output)
    predictor = load(folder, device="cpu")
    if not (folder / TOKENIZER).is_dir():
        raise ValueError(f"{folder}: transformers reads it as it is; give a folder that fine-tuning wrote")
    if predictor.task.ARCHITECTURE is None:
        raise ValueError(
            f"{folder}: transformers has no classifier for its task; its format is in docs/reference/tasks.md"
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as aside:
        whole = Path(aside) / "model"
        write(predictor, folder, whole, entity_vocab)
        whole.replace(output)


def write(predictor: Predictor, folder: Path, output: Path, entity_vocab: Path | None) -> None:
    """Writes all files into `output`; the arguments are those of `export`."""
    task = predictor.task
    assert task.ARCHITECTURE is not None
    words_alone = "ForQuestionAnswering" if task is extractive.TASK else "Model"
    name, luke = task.ARCHITECTURE if predictor.entities else words_alone, predictor.module.luke
    head, labels = predictor.module.classifier.state_dict(), predictor.inputs.labels
    export_fine_tuned(
        FineTuned(name, luke, head, labels, predictor.temperature),
        output,
        tokenizer=folder / TOKENIZER,
        words=marker_rows(predictor),
        entities=rows_of_titles(predictor, folder, entity_vocab) if predictor.entities else None,
        blank_first=predictor.inputs.profile == "paper",
    )
    tokenizer = predictor.inputs.tokenizer
    parts_marks = task is extractive.TASK and predictor.inputs.profile == "fixed"
    if parts_marks and isinstance(tokenizer, ByteLevelBPE):
        write_aside(output / "merges.txt", tokenizer.marks_apart().write_merges)
    write_card(predictor, folder, output, task.ARCHITECTURE)


def check_output(output: Path) -> None:
    """Raises: ValueError where something is there, which would be lost."""
    for path in (output, *output.parents):
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path}: a file; give a folder to write")
    if output.exists() and (found := sorted(path.name for path in output.iterdir())):
        raise ValueError(f"{output}: holds {', '.join(found[:5])}; give a new folder, or empty this one")


def marker_rows(predictor: Predictor) -> dict[str, int]:
    """The rows of the word table for <ent> and <ent2>."""
    vocabulary, markers = predictor.inputs.tokenizer.vocab, predictor.inputs.markers
    ids = [*markers.values(), *(vocabulary[word] for word in WORDS_OF_MARKERS)]
    ids = ids if len(markers) != 1 else [ids[0], vocabulary["#"]]
    return dict(zip(THEIR_MARKERS, ids, strict=False))


def write_card(predictor: Predictor, folder: Path, output: Path, architecture: str) -> None:
    """Writes README.md."""
    values, scores = read_json(folder / CONFIG), read_optional(folder / METRICS)
    name = read_json(output / CONFIG)["architectures"][0]
    tokenizer = predictor.inputs.tokenizer
    kind = {"is_bert": isinstance(tokenizer, WordPiece), "is_unigram": isinstance(tokenizer, Unigram)}
    kind["has_entities"] = predictor.entities
    card = fine_tuned_card(architecture, name, values, scores, **kind)
    write_aside(output / "README.md", lambda aside: aside.write_text(card, encoding="utf-8"))


def rows_of_titles(predictor: Predictor, folder: Path, entity_vocab: Path | None) -> Mapping[str, int]:
    """The titles that are exported, in order, and the row of the model's entity table that each is given."""
    size = predictor.module.luke.config.entity_vocab_size
    if predictor.task.ENTITY_ROWS is None:
        if entity_vocab is None and size == len(SPECIAL_TITLES):
            return {title: row for row, title in enumerate(SPECIAL_TITLES)}
        if entity_vocab is None:
            raise ValueError(
                f"{folder}: the model takes Wikipedia's entities; give their titles (--entity-vocab), the "
                "entity_vocab.json of BuildEntityVocab, by which its mention table was made"
            )
        return entity_rows(checked_vocabulary(entity_vocab, size, SPECIAL_TITLES), lite=False)
    mask = 1  # the row after [PAD]; what the task does not use starts there as well
    return dict(zip((*SPECIAL_TITLES, SECOND_MASK), (PAD_ENTITY, mask, mask, size - 1), strict=True))
