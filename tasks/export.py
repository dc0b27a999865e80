"""Writes a fine-tuned model for transformers: `python -m tasks.export MODEL_DIR OUTPUT`.

The folder loads with LukeForEntityClassification, LukeForEntityPairClassification or
LukeForEntitySpanClassification, as the task has it, and with LukeTokenizer.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from model.fine_tuned import FineTuned, export_fine_tuned
from tasks.predict import THEIR_MARKERS, TOKENIZER, load

WORDS_OF_MARKERS = ("@", "#")  # what <ent> and <ent2> start from where the task has no such marker


def export(folder: Path, output: Path) -> None:
    """Exports a folder that fine-tuning wrote. Raises: ValueError for a model without entity inputs."""
    predictor = load(folder, device="cpu")
    if not (folder / TOKENIZER).is_dir():
        raise ValueError(f"{folder}: transformers reads it as it is; give a folder that fine-tuning wrote")
    if not predictor.entities:
        raise ValueError(f"{folder}: the model classifies words alone, transformers' LUKEs classify entities")
    vocabulary, luke = predictor.tokenizer.vocab, predictor.module.luke
    ids = [*predictor.markers.values(), *(vocabulary[word] for word in WORDS_OF_MARKERS)]
    ids = ids if len(predictor.markers) != 1 else [ids[0], vocabulary["#"]]
    mask = 1  # the row after [PAD]; what the task does not use starts there as well
    fine_tuned = FineTuned(
        predictor.task.ARCHITECTURE,
        luke,
        predictor.module.classifier.state_dict(),
        predictor.labels,
    )
    export_fine_tuned(
        fine_tuned,
        output,
        tokenizer=folder / TOKENIZER,
        words=dict(zip(THEIR_MARKERS, ids, strict=False)),
        entities=(0, mask, mask, luke.config.entity_vocab_size - 1),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a fine-tuned model's folder and the one to write."""
    parser = argparse.ArgumentParser(prog="python -m tasks.export", description="Export for transformers.")
    parser.add_argument("folder", type=Path, metavar="MODEL_DIR")
    parser.add_argument("output", type=Path)
    options = parser.parse_args(arguments)
    try:
        export(options.folder, options.output)
    except ValueError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
