"""Fine-tuned models for transformers: `python -m tasks.export MODEL_DIR OUTPUT`."""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tasks.io.arguments import run
from tasks.serving.export import export


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a fine-tuned model's folder and the one to write."""
    parser = argparse.ArgumentParser(prog="python -m tasks.export", description="Export for transformers.")
    parser.add_argument("folder", type=Path, metavar="MODEL_DIR", help="folder of FineTune")
    parser.add_argument("output", type=Path, help="folder to write")
    parser.add_argument("--entity-vocab", type=Path, help="titles of the entities, where the task takes any")
    options = parser.parse_args(arguments)
    run(partial(export, options.folder, options.output, entity_vocab=options.entity_vocab))
    print(f"{options.output}: a model for transformers")


if __name__ == "__main__":
    main()
