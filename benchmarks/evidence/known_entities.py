"""The held-out entities that a pretrained model names right, by how often training annotates them.

    python -m benchmarks.evidence.known_entities --sequences DIR --links DIR --mentions DIR --tokenizer DIR --models DIR

Entities are hidden as `model.evaluation` hides them. All known entities compete.
"""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.evidence.disambiguation import interval
from benchmarks.harness.options import Options, count
from benchmarks.harness.report import Record, Report, progress
from model.data.held_out import HeldOut
from model.hf.load import read_pretrained
from model.luke.batch import IGNORED
from model.luke.config import SPECIAL_ENTITIES
from model.luke.heads import LukeForPretraining
from model.pretraining.evaluation import entity_columns, evaluating, mask, open_held_out
from model.pretraining.ranking import BANDS
from pipeline.lookup.held_out import is_held_out
from pipeline.sequences.commonest import write_commonest

BATCH = 32


@dataclass(frozen=True)
class Kept(HeldOut):
    """Some of the held-out sequences: those of these indices, which rise."""

    kept: NDArray[np.int64] = field(kw_only=True)

    def __len__(self) -> int:
        return len(self.kept)

    def shuffled(self) -> list[int]:
        wanted = {*self.kept.tolist()}
        return [index for index in super().shuffled() if index in wanted]


def beyond(held_out: HeldOut, share: float) -> HeldOut:
    """Return the held-out sequences without those of the first pages, that share of all."""
    pages = held_out.corpus.table.column("page_id").to_numpy()
    kept = np.flatnonzero([not is_held_out(int(page), share) for page in pages])
    if not len(kept):
        raise ValueError(f"--beyond {share}: no held-out page is left; build with a larger --held-out")
    return Kept(held_out.corpus, held_out.training_counts, held_out.commonest, kept=kept)


@torch.no_grad()
def asked(module: LukeForPretraining, held_out: HeldOut, rounds: int) -> Record:
    """Return of each known entity that is asked for: page, label, rank among the known, commonest known target."""
    places = [(epoch, index) for epoch in range(rounds) for index in held_out.sample(len(held_out))]
    masker, corpus, found = held_out.make_masker(masks_words=False), held_out.corpus, []
    with evaluating(module):
        for first in range(0, len(places), BATCH):
            chosen = places[first : first + BATCH]
            labels, _, _, ranks, _, commonest, _ = entity_columns(module, held_out, masker, chosen)
            counts = [int((each.entity_labels != IGNORED).sum()) for each in mask(masker, corpus, chosen)]
            pages = np.repeat([corpus[index].page_id for _, index in chosen], counts)
            found.append(np.stack([pages, labels, ranks, commonest]).astype(np.int64))
    columns = np.concatenate(found, axis=1)
    columns = columns[:, columns[1] >= SPECIAL_ENTITIES]
    return dict(zip(("page", "label", "rank", "commonest"), columns, strict=True))


def rows_of(found: Sequence[Record], training_counts: NDArray[np.int64]) -> list[Record]:
    """Return by how often training annotates an entity: how many are asked, and the shares of models and table."""
    first = found[0]
    seen = training_counts[first["label"]]
    rows = []
    for name, least, most in [("in all", 0, None), *((band(*ends), *ends) for ends in BANDS)]:
        is_inside = (seen >= least) & (seen <= (math.inf if most is None else most))
        row: Record = {"training annotates it": name, "asked": int(is_inside.sum())}
        if is_inside.any():
            top_1 = np.mean([each["rank"][is_inside] == 1 for each in found], axis=0)
            mean, low, high = interval(first["page"][is_inside], 100 * top_1)
            row |= {"LUKE": mean, "from": low, "to": high}
            row["of the first 10"] = 100 * float(np.mean([each["rank"][is_inside] <= 10 for each in found]))
            is_commonest = (first["commonest"] == first["label"])[is_inside]
            row["commonest target"] = 100 * float(is_commonest.mean())
            _, low, high = interval(first["page"][is_inside], 100 * (top_1 - is_commonest))
            row |= {"LUKE less it, from": low, "LUKE less it, to": high}
            rows.append(row)
    return rows


def band(least: int, most: int | None) -> str:
    """Return a band in words."""
    return f"{least:,} or more" if most is None else "never" if most == 0 else f"{least} to {most}"


def main() -> None:
    shared = ("sequences", "links", "mentions", "tokenizer", "models", "threads")
    options = Options("evidence.known_entities", __doc__, *shared)
    add = options.add_argument
    add("--beyond", type=float, default=0.0, help="leave out the first pages, this share of all")
    add("--rounds", type=count, default=1, help="how often each sequence is masked")
    chosen = options.read()
    if not chosen.models:
        options.error("give --models: folders of pretraining")
    torch.set_num_threads(chosen.threads)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "commonest.arrow"
        names = ("sequences", "links", "mentions", "tokenizer")
        write_commonest(str(table), **{name: str(getattr(chosen, name)) for name in names})
        held_out = beyond(open_held_out(chosen.sequences, table, chosen.models[0]), chosen.beyond)
        found = []
        for model in chosen.models:
            progress(f"{model}")
            found.append(asked(read_pretrained(model), held_out, chosen.rounds))
    report = Report("Held-out entities that LUKE names", chosen, ["torch", "numpy"])
    pages = len(np.unique(found[0]["page"]))
    report.head.append(
        f"{len(chosen.models)} models, {len(held_out):,} held-out sequences, {pages:,} pages with known entities. "
        "Shares are in per cent, those of LUKE the mean over models, their intervals of 95 % over resampled pages.\n"
    )
    report.add("Named right", rows_of(found, held_out.training_counts))
    report.finish()


if __name__ == "__main__":
    main()
