"""The report's first screen as data: what was kept of the dump, four figures with their intervals."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workflows.base.stage import Stage
from workflows.report.charts import COMPARED, LINKERS

PARAGRAPH = 420  # characters of a linked text
STEPS = ("ExtractPages", "ResolveLinks", "BuildEntityVocab", "BuildSequences")
Figures = Mapping[str, Any]


def funnel(stages: Mapping[str, Stage]) -> list[dict[str, Any]]:
    """The counts of each step from the dump to the sequences.

    Of pages, links and sequences it has the `unit` and the `steps`: `name`, `count`, and what was `lost` on the way to
    it, by reason. Without sequences the links end at the vocabulary.
    """
    made = {name: stages[name].manifest() for name in STEPS if name in stages}
    if "BuildEntityVocab" not in made:
        return []
    pages, links, vocab = (made[name] for name in ("ExtractPages", "ResolveLinks", "BuildEntityVocab"))
    lost_pages = {"redirects": pages.rows["redirects"], "rejected": pages.rows["rejected"]}
    lost_pages |= dropped(pages.drops, "pages")
    in_text, in_vocab = dropped(pages.drops, "links"), vocab.facts["links_in_vocab"]
    found, kept = pages.rows["links"], links.rows["links"]
    steps = [
        step("links in the wikitext", found + sum(in_text.values())),
        step("in running text", found, in_text),
        step("with a valid target", kept, dropped(links.drops, "links")),
        step("to a known entity", in_vocab, {"titles outside of the vocabulary": kept - in_vocab}),
    ]
    read = pages.facts.get("pages_read", pages.rows["pages"] + sum(lost_pages.values()))
    articles = [step("pages in the dump", read), step("articles", pages.rows["pages"], lost_pages)]
    groups = [{"unit": "pages", "steps": articles}, {"unit": "links", "steps": steps}]
    if sequences := made.get("BuildSequences"):
        facts, drops = sequences.facts, sequences.drops
        known = facts["annotations"] - facts["unknown_entities"]
        steps.append(step("in sequences", known, {"in sentences or sequences that are left out": in_vocab - known}))
        without = dropped(drops, "sequences")
        packed = facts["sequences"] + sum(without.values())
        both = [step("sequences packed", packed), step("sequences with a link", facts["sequences"], without)]
        groups.append({"unit": "sequences", "steps": both})
    return groups


def step(name: str, count: int, lost: Mapping[str, int] | None = None) -> dict[str, Any]:
    """A step of the funnel; of what was lost the largest first."""
    known = sorted((-number, reason) for reason, number in (lost or {}).items() if number > 0)
    return {"name": name, "count": count, "lost": {reason: -number for number, reason in known}}


def dropped(drops: Mapping[str, int], unit: str) -> dict[str, int]:
    """The drops of a unit, such as links, by their reason alone."""
    kept = (drop for drop in drops.items() if drop[0].startswith(f"{unit}:"))
    return {name.removeprefix(f"{unit}:").replace("_", " "): count for name, count in kept}


def headline(content: Figures, speeds: Figures) -> list[dict[str, Any]]:
    """The figures that come first: `title`, `value`, its interval (`low` and `high`), the `unit`, and a `sentence`."""
    return [*_known_entities(content["training"] or {}), *_linking(content["linking"] or {}), *_speed(speeds)]


def _known_entities(training: Figures) -> Iterator[dict[str, Any]]:
    group = training.get("Pretrain", {}).get("held_out", {}).get("known_entity", {})
    if count := group.get("count"):
        from scipy.stats import binomtest

        model, *others = ((group[key], name) for key, (name, *_) in COMPARED.items() if key in group)
        beside = [_beside(model[0], share, name) for share, name in others]
        sentence = "; ".join([f"Of {count:,} masked ones on held-out pages", *beside]) + "."
        ends = binomtest(round(group["top_1"] * count), count).proportion_ci(method="wilson")
        yield _figure("known entities named right", "share", group["top_1"], ends, sentence)


def _linking(linking: Figures) -> Iterator[dict[str, Any]]:
    scored: Figures = next(iter(linking.get("sets", ())), {"methods": {}})
    methods = [(name, scored["methods"][name]) for name in LINKERS if name in scored["methods"]]
    if not methods:
        return
    name, scores = methods[0]
    overall, calibration = scores["disambiguation"]["overall"], scores.get("calibration") or {}
    if count := overall["mentions"]:
        points = _beside(overall["accuracy"], overall["prior"], "the prior alone")
        sentence = f"Of {count:,} in {scored['name']} whose page the dump knows, by {name}; {points}."
        ends = overall.get("accuracy_interval")
        yield _figure("mentions linked right", "share", overall["accuracy"], ends, sentence)
    if calibration.get("mentions"):
        sentence = f"How far the probability of a link ({name}) is from how often it is right; 0 is best."
        name = "expected_calibration_error"
        ends = calibration.get(f"{name}_interval")
        yield _figure("calibration error", "number", calibration[name], ends, sentence)


def _speed(speeds: Figures) -> Iterator[dict[str, Any]]:
    speed = speeds.get("Pretrain") or {}
    if rates := sorted(row["words_per_second"] for row in speed.get("steps", ())):
        ends = [rates[round(place * (len(rates) - 1))] for place in (0.05, 0.95)]
        sentence = f"On {speed['starts'][-1]['device']}; nine of ten lines of the log lie between."
        yield _figure("words a second, median", "words", statistics.median(rates), ends, sentence)


def _beside(value: float, other: float, name: str) -> str:
    return f"{100 * abs(value - other):.1f} points {'above' if value >= other else 'below'} {name}"


def _figure(title: str, unit: str, value: float, ends: Sequence[float] | None, sentence: str) -> dict[str, Any]:
    low, high = ends or (None, None)
    return {"title": title, "unit": unit, "value": value, "low": low, "high": high, "sentence": sentence}


def amount(value: float, unit: str) -> str:
    """A figure of the first screen as text."""
    return {"share": "{:.1%}", "number": "{:.3f}"}.get(unit, "{:,.0f}").format(value)


def paragraph(linked: Figures | None) -> dict[str, Any] | None:
    """The beginning of the first linked text, cut after a mention or a word; None where there is none."""
    if not linked or not linked["documents"]:
        return None
    document = linked["documents"][0]
    parts: list[Any] = []
    room = PARAGRAPH
    for part in document["text"]:
        text = part if isinstance(part, str) else part[0]
        if len(text) >= room:
            if isinstance(part, str):
                parts.append(text[:room].rpartition(" ")[0] + " …")
            break
        room -= len(text)
        parts.append(part)
    return {"id": document["id"], "set": document["set"], "text": parts, "mentions": document["mentions"]}
