"""Parameters of a preset, part by part: `python -m model.sizes PRESET`."""

import argparse
import sys
from collections import Counter

from model.luke.config import PRESETS, LukeConfig

# The part of a parameter, by what is in its name; the first that is there counts.
PARTS = {
    "entity_embeddings.token.weight": "entity token embeddings (B)",
    "entity_embeddings.": "entity side (U, positions, type, layer norm)",
    "_query.": "entity-aware queries",
    "layers.": "transformer layers",
    "luke.": "word embeddings",
    "word_head.": "word head",
    "entity_head.": "entity head",
}


def parameter_counts(config: LukeConfig) -> dict[str, int]:
    """Parameters per part of the pretraining model, counted on the meta device (no memory is taken)."""
    import torch

    from model.luke.heads import LukeForPretraining

    with torch.device("meta"):
        module = LukeForPretraining(config)
    counts: Counter[str] = Counter()
    for name, parameter in module.named_parameters():
        counts[next(part for mark, part in PARTS.items() if mark in name)] += parameter.numel()
    return dict(counts)


def main(arguments: list[str]) -> int:
    """Print the parameter count of a preset, a line per part."""
    parser = argparse.ArgumentParser(prog="python -m model.sizes", description="Parameters, part by part.")
    parser.add_argument("preset", choices=PRESETS)
    counts = parameter_counts(PRESETS[parser.parse_args(arguments).preset])
    roberta = ("word embeddings", "transformer layers", "word head")
    for part, count in counts.items():
        print(f"{part:<46}{count:>14,}")
    print(f"{'as in RoBERTa':<46}{sum(counts[part] for part in roberta):>14,}")
    print(f"{'all':<46}{sum(counts.values()):>14,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
