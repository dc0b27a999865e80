"""How alike two entities are: cosines of their vectors, held against what people say.

    python -m benchmarks.evidence.relatedness --mentions DIR --arm NAME DIR... --vectors FILE [--found FILE]

Probe 2 of docs/explanation/evidence.md. WikiSim-353 has a number for each of its pairs. KORE has 21 entities with 20
others each, the most related first: its figure is the mean over those that have five covered others or more. A pair is
covered where both titles, after the dump's redirects, are entities of the models and have a vector of wikipedia2vec.
Intervals are of resampled pairs, within each entity of KORE, for the mean over the models of an arm.
"""

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.evidence.ambiguous import Floats
from benchmarks.evidence.disambiguation import SAMPLES, SEED
from benchmarks.harness.arrays import read_arrays, write_arrays
from benchmarks.harness.options import DATA, Options, absolute
from benchmarks.harness.report import Record, Report, progress
from model.pretraining.evaluation import read_pretrained
from pipeline.lookup.targets import Targets

SETS = DATA / "entity-relatedness"
LEAST = 5  # covered pairs of a group
PEER = "wikipedia2vec"
TITLES = "titles"  # in a file of vectors; no arm can have that name
Vectors = NDArray[np.float32]


class Pair(NamedTuple):
    """Two titles, how related they are, and the group within which that is compared."""

    group: str
    first: str
    second: str
    relatedness: float


def read_wikisim(path: Path) -> list[Pair]:
    """The pairs of WikiSim-353, all of one group."""
    with path.open(encoding="utf-8") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            Pair(
                "",
                row["matchA"].replace("_", " "),
                row["matchB"].replace("_", " "),
                float(row["relatedness"]),
            )
            for row in rows
        ]


def read_kore(path: Path) -> list[Pair]:
    """The pairs of KORE: an entity, and below it, indented, others by falling relatedness."""
    found: list[Pair] = []
    entity, rank = "", 0
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("\t"):
            rank += 1
            found.append(Pair(entity, entity, line.strip(), -rank))
        elif line.strip():
            entity, rank = line.strip(), 0
    return found


def read_vectors(path: Path, titles: Sequence[str]) -> dict[str, Vectors]:
    """The vectors that wikipedia2vec wrote as text (`save-text --out-format word2vec`) of these titles.

    Raises: ValueError where it has none of them, as in its other formats.
    """
    wanted, found = {f"ENTITY/{title.replace(' ', '_')}": title for title in titles}, {}
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            name, _, numbers = line.partition(" ")
            if name in wanted:
                found[wanted[name]] = np.array(numbers.split(), np.float32)
    if not found:
        raise ValueError(
            f"{path}: no line begins with an entity that is asked; save it with --out-format word2vec"
        )
    return found


def vectors_of(folder: Path, ids: Mapping[str, int]) -> dict[str, Vectors]:
    """The rows of a pretrained model's entity table, by title."""
    table = read_pretrained(folder).luke.entity_embeddings.token.weight.detach().float().numpy()
    return {title: table[number] for title, number in ids.items()}


def vectors_of_arms(
    chosen: argparse.Namespace, ids: Mapping[str, int]
) -> dict[str, list[dict[str, Vectors]]]:
    """By arm the vectors of each model: those of the file `found`, or else those of its folders, which are kept there.

    Raises: ValueError where arms and a file that is there are given, or the file is of other titles.
    """
    is_kept = bool(chosen.found and chosen.found.is_file())
    if is_kept and chosen.arms:
        raise ValueError(f"{chosen.found}: is there; leave --arm out, or give another --found")
    if chosen.found and not is_kept and not chosen.arms:
        raise ValueError(f"{chosen.found}: is not there; give --arm, whose vectors it will have")
    if is_kept:
        return kept_vectors(chosen.found, ids)
    arms = {name: [vectors_of(folder, ids) for folder in folders] for name, folders in chosen.arms.items()}
    if chosen.found:
        tables = {name: np.stack([np.stack([own[t] for t in ids]) for own in arms[name]]) for name in arms}
        write_arrays(chosen.found, {TITLES: np.array([*ids])} | tables)
    return arms


def kept_vectors(path: Path, ids: Mapping[str, int]) -> dict[str, list[dict[str, Vectors]]]:
    """What `vectors_of_arms` kept: an array (models, titles, width) for each arm."""
    kept = read_arrays(path, TITLES)
    titles: list[str] = kept.pop(TITLES).tolist()
    if set(titles) != ids.keys():
        raise ValueError(f"{path}: its titles are not those of the mention table; give another --found")
    return {name: [dict(zip(titles, each, strict=True)) for each in table] for name, table in kept.items()}


def cosines(first: Vectors, second: Vectors) -> Floats:
    """(pairs): of the rows (pairs, width) of both."""
    product = (first * second).sum(axis=1)
    return (product / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)).astype(np.float64)


def correlations(wanted: Floats, found: Floats, rows: NDArray[np.int64]) -> Floats:
    """(samples): Spearman's of the pairs that each row (samples, pairs) draws; 0 where all drawn are equal."""
    ranks = [rankdata(values[rows], axis=1) for values in (wanted, found)]
    centred = [each - each.mean(axis=1, keepdims=True) for each in ranks]
    product = (centred[0] * centred[1]).sum(axis=1)
    size = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    return np.divide(product, size, out=np.zeros_like(product), where=size > 0)


def sampled(pairs: Sequence[Pair], of_each: Sequence[Floats]) -> Floats:
    """(1 + SAMPLES): the mean of the correlations over groups and models; the first has each pair once.

    `of_each` are the cosines (pairs) of each model.
    """
    generator = np.random.default_rng(SEED)
    groups = [np.flatnonzero([each.group == name for each in pairs]) for name in groups_of(pairs)]
    wanted = np.array([each.relatedness for each in pairs])
    total = np.zeros(1 + SAMPLES)
    for group in groups:
        drawn = generator.integers(len(group), size=(SAMPLES, len(group)))
        rows = group[np.vstack([np.arange(len(group)), drawn])]
        for found in of_each:
            total += correlations(wanted, found, rows)
    return total / len(groups) / len(of_each)


def groups_of(pairs: Sequence[Pair]) -> list[str]:
    """The groups, in their order."""
    return list(dict.fromkeys(each.group for each in pairs))


def large_groups(pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs of those groups that have enough of them."""
    sizes = {name: sum(each.group == name for each in pairs) for name in groups_of(pairs)}
    return [each for each in pairs if sizes[each.group] >= LEAST]


def row_of(method: str, samples: Mapping[str, Floats]) -> Record:
    """The figure of each set with its interval of 95 %."""
    row: Record = {"method": method}
    for name, each in samples.items():
        low, high = np.percentile(each[1:], [2.5, 97.5])
        row |= {name: float(each[0]), f"{name} from": float(low), f"{name} to": float(high)}
    return row


def cosines_of(pairs: Sequence[Pair], vectors: Mapping[str, Vectors]) -> Floats:
    """(pairs): by the vectors of titles."""
    return cosines(*(np.stack([vectors[each[side]] for each in pairs]) for side in (1, 2)))


def differences(samples: Mapping[str, Mapping[str, Floats]], bases: Sequence[str]) -> list[Record]:
    """How much higher each arm is than those it is held against."""
    return [
        row_of(f"{name} less {base}", {kind: each - samples[base][kind] for kind, each in own.items()})
        for name, own in samples.items()
        for base in bases
        if base in samples and name not in bases
    ]


def compare(
    sets: Mapping[str, Sequence[Pair]],
    arms: Mapping[str, Sequence[Mapping[str, Vectors]]],
    ids: Mapping[str, int],
) -> tuple[list[Record], dict[str, dict[str, Floats]]]:
    """Of each set how many pairs are asked, and by arm the samples of its figure.

    Raises: ValueError where too few pairs of a set are known to all arms.
    """
    shared = set.intersection(*(set(each) for models in arms.values() for each in models))
    coverage, samples = list[Record](), dict[str, dict[str, Floats]]()
    for kind, pairs in sets.items():
        asked = large_groups([each for each in pairs if {each.first, each.second} <= shared])
        if not asked:
            raise ValueError(f"{kind}: too few of its pairs are known to all; leave one of them out")
        known = sum({each.first, each.second} <= ids.keys() for each in pairs)
        counts = {"pairs": len(pairs), "entities of the models": known, "asked": len(asked)}
        coverage.append({"set": kind} | counts)
        progress(f"{kind}: {len(asked)} pairs")
        for name, models in arms.items():
            samples.setdefault(name, {})[kind] = sampled(asked, [cosines_of(asked, each) for each in models])
    return coverage, samples


def read_options(arguments: list[str]) -> tuple[Options, argparse.Namespace]:
    """The command line."""
    options = Options("evidence.relatedness", __doc__)
    options.take("arms")
    add = options.add_argument
    add("--mentions", type=absolute, required=True, help="folder of BuildMentionTable")
    add("--vectors", type=absolute, help="of wikipedia2vec, as text, of the same dump")
    add(
        "--found",
        type=absolute,
        help="file.npz of the arms' vectors: written where it is not there, else read instead of --arm",
    )
    add("--sets", type=absolute, default=SETS, help="folder of WikiSim-353.txt and KORE.txt")
    chosen = options.read(arguments)
    if not chosen.arms and not chosen.vectors and not chosen.found:
        options.error("there is nothing to compare; give --arm, --vectors or both")
    if TITLES in chosen.arms:
        options.error(f"--arm {TITLES}: another name is wanted")
    return options, chosen


def main(arguments: list[str]) -> None:
    """Measure and write the report."""
    options, chosen = read_options(arguments)
    sets = {
        "WikiSim-353": read_wikisim(chosen.sets / "WikiSim-353.txt"),
        "KORE": read_kore(chosen.sets / "KORE.txt"),
    }
    targets = Targets(str(chosen.mentions))
    titles = {title for pairs in sets.values() for each in pairs for title in (each.first, each.second)}
    found = {title: target for title in titles if (target := targets.get(title))}
    ids = {title: each.entity_id for title, each in found.items() if each.entity_id is not None}
    try:
        arms = vectors_of_arms(chosen, ids)
        names = [*arms]
        if chosen.vectors:
            own = read_vectors(chosen.vectors, [each.title for each in found.values()])
            arms[PEER] = [{title: own[each.title] for title, each in found.items() if each.title in own}]
        coverage, samples = compare(sets, arms, ids)
    except ValueError as error:
        options.error(str(error))
    report = Report("How alike entities are", chosen, ["torch", "numpy", "scipy"])
    counts = ", ".join(f"{len(models)} of {name}" for name, models in arms.items())
    report.head.append(f"Models: {counts}. Intervals of 95 % are of {SAMPLES:,} samples of pairs.\n")
    report.add("Pairs", coverage)
    report.add("Spearman's rank correlation", [row_of(name, own) for name, own in samples.items()])
    report.add("Differences", differences(samples, names[:1] * (len(names) > 1) + [PEER]))
    report.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
