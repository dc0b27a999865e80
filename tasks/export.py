"""Fine-tuned models for transformers: `python -m tasks.export MODEL_DIR OUTPUT`."""

import argparse
from collections.abc import Sequence

from tasks.finetuning.registry import TASKS
from tasks.io.arguments import add_options, fine_tuned_folder, run
from tasks.serving.export import export


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a fine-tuned model's folder and the one to write."""
    parser = argparse.ArgumentParser(
        prog="python -m tasks.export", description="Export a fine-tuned model for transformers."
    )
    add_options(parser, "export", "fine_tuned", task=TASKS)
    options = parser.parse_args(arguments)

    def write() -> None:
        folder = fine_tuned_folder(options.folder, options.task)
        export(folder, options.output, entity_vocab=options.entity_vocab)
        print(f"{options.output}: a model for transformers")

    run(write)


if __name__ == "__main__":
    main()
