"""Each difference between LUKE's builder and this project, with a number and the reason."""

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.workloads import Record

TABLE = Path(__file__).with_name("differences.toml")


def differences(found: Record, fixed: Sequence[Record], paper: Sequence[Record]) -> list[Record]:
    """Rows of (what, LUKE's builder, here, found, why) for a dump.

    Args:
        found: what `compare.compare` gives.
        fixed: runs of our stages on the dump.
        paper: runs with the profile `paper`.
    """
    kinds = {row["LUKE's links"]: row["links"] for row in found["kinds"]}
    steps = {row["cause"]: row["links"] for row in found["steps"]}
    ours, old = fixed[-1]["stages"], paper[-1]["stages"] if paper else None
    cut = Counter({name.removeprefix("links:"): n for name, n in ours["ExtractPages"]["drops"].items()})
    sequences, theirs = ours["BuildSequences"], found["sequences"]
    numbers = {
        "fragments": sum(count for kind, count in kinds.items() if kind.startswith("with a fragment")),
        "without_fragments": steps["the #fragment is removed"],
        "followed": steps["redirects are followed to their end"],
        "normalised": steps["titles are normalised as MediaWiki does"],
        "categories": "; ".join(f"{count:,} {kind}" for kind, count in found["categories"].items()),
        "colons": kinds.get("with a colon (other languages, other namespaces), no such page", 0),
        "foreign": sum(cut[kind] for kind in ("interlanguage", "interwiki", "other_namespace")),
        "cut": cut,
        "same": found["overlap"][-1],
        "pages": ours["ExtractPages"]["rows"],
        "theirs": Counter(theirs["[UNK]"]),
        "ours": sequences["facts"],
        "lost": Counter(sequences["drops"]),
        "size_dropped": _size(theirs["dropped"]),
        "size_kept": _size(theirs["[UNK]"]),
        "size_ours": _size(sequences["facts"]),
        "profiles": "the profile paper did not run",
    }
    if old:
        size = _size(old["BuildSequences"]["facts"])
        numbers["profiles"] = f"profile paper: {_counts(old)}, {size}; fixed: {_counts(ours)}"
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["difference"]
    return [
        {"what": row["what"], "LUKE's builder": row["luke"], "here": row["here"]}
        | {"found": row["found"].format_map({**found, **numbers}), "why": row["why"]}
        for row in rows
    ]


def _counts(stages: Record) -> str:
    links, entities = stages["ExtractPages"]["rows"]["links"], stages["BuildEntityVocab"]["rows"]["entities"]
    return f"{links:,} links, {entities:,} entities"


def _size(facts: Record) -> str:
    return (
        f"{facts.get('sequences', 0):,} sequences, {facts.get('words', 0):,} words, "
        f"{facts.get('annotations', 0):,} annotations ({facts.get('unknown_entities', 0):,} [UNK])"
    )
