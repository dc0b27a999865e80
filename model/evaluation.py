"""Held-out figures of a pretrained model: `python -m model.evaluation WORKDIR`, or MODEL SEQUENCES."""

import argparse
import json
import sys
from pathlib import Path

from model.files import PRETRAINING, read_optional
from model.hf.load import read_pretrained
from model.pretraining.evaluation import evaluate, open_held_out
from model.training.devices import resolve_device


def of_workdir(workdir: Path) -> tuple[Path, Path]:
    """The newest pretraining of a work directory, and its sequences. Raises: ValueError where one is missing."""
    if not workdir.is_dir():
        raise ValueError(f"{workdir}: no such folder")
    finished = read_optional(workdir / "stages.json")
    for stage in ("Pretrain", "BuildSequences"):
        if stage not in finished:
            raise ValueError(f"{workdir}: no finished {stage} there; give a workdir, or MODEL SEQUENCES")
    model = workdir / finished["Pretrain"]
    is_of_several = "MergeSequences" in read_optional(model / "manifest.json").get("inputs", {})
    return model, workdir / finished["MergeSequences" if is_of_several else "BuildSequences"]


def main(arguments: list[str]) -> int:
    """Print the figures of a model as JSON."""
    parser = argparse.ArgumentParser(prog="python -m model.evaluation", description=__doc__)
    parser.add_argument("model", type=Path, help="work directory, or folder that pretraining wrote")
    parser.add_argument("sequences", type=Path, nargs="?", help="folder of BuildSequences")
    parser.add_argument("--commonest", type=Path, help="commonest.arrow of Pretrain, for a second baseline")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    options = parser.parse_args(arguments)
    try:
        if not options.sequences:
            options.model, options.sequences = of_workdir(options.model)
            commonest = options.model / "commonest.arrow"
            options.commonest = options.commonest or (commonest if commonest.is_file() else None)
        module = read_pretrained(options.model).to(resolve_device(options.device))
        held_out = open_held_out(options.sequences, options.commonest, options.model)
        if not (masks_words := read_optional(options.model / PRETRAINING).get("word_head", True)):
            print("its word head was not trained: words are not judged", file=sys.stderr)
        print(json.dumps(evaluate(module, held_out, masks_words=masks_words), indent=1))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
