"""How far the fast extraction agrees with the oracle of the tests, difference by difference.

``python benchmarks/agreement.py DUMP... [--examples N] [--output FILE.json]``

Agreement is intersection over union: of the multisets of (page, target, anchor), and of (page, paragraph text).
A difference belongs to the first cause whose change to the oracle's input (with all changes before it) makes it go
away, so that every class can be computed again. The verdict says who is wrong by MediaWiki's rules.
"""

import argparse
import datetime
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from tests.support import oracle

from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import Page, read_pages, read_site_info
from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract

ORACLE, BOTH = "the oracle's fault", "both defensible"
_CONTEXT = 80  # characters of the source on each side of a difference

# What the causes change.
_WIKI_TABLE = re.compile(
    r"^[ \t:*#;]*\{\|(?:(?!^[ \t:*#;]*\{\||^[ \t]*\|\}).)*?^[ \t]*\|\}(?!\}(?!\}))", re.MULTILINE | re.DOTALL
)
_HTML_TABLE = re.compile(r"<table\b(?:(?!<table\b|</table).)*</table\s*>", re.DOTALL | re.IGNORECASE)
_ROW = re.compile(r"^[ \t]*\{?\|[^\n]*$", re.MULTILINE)
_NO_HEADING = re.compile(r"^=+(?=[^\n]*=+[^\S\n]*[^\s=<][^=\n]*$)", re.MULTILINE)
_EQUALS_LINE = re.compile(r"^={3,}[^\S\n]*$", re.MULTILINE)
_COMMENT_LINE = re.compile(r"^[ \t]*(?:<!--(?:(?!-->).)*-->[ \t]*)+\n", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--(?:(?!-->).)*(?:-->|\Z)", re.DOTALL)
_FILE_LINK = re.compile(
    r"\[\[\s*(?:file|image)\s*:(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]", re.IGNORECASE
)
_REFERENCE = re.compile(r"<ref\b[^<>]*(?<!/)>(?:(?!</ref\s*>).)*</ref\s*>", re.DOTALL | re.IGNORECASE)
_ADDRESS = re.compile(r"(\[(?:https?:)?//[^\s\]]+)[ ]{2,}")
_HEADING_TAG = re.compile(r"</?h[1-6]\b[^<>]*>", re.IGNORECASE)


class Cause(NamedTuple):
    """A class of differences; ``change`` makes the oracle's input such that they go away."""

    name: str
    verdict: str
    change: Callable[[str], str]


def _unpaired(text: str) -> str:
    return text


def _tables(text: str) -> str:
    for table in (_WIKI_TABLE, _HTML_TABLE):
        count = 1
        while count:
            text, count = table.subn("\n", text)
    return text


CAUSES = (
    Cause("apostrophes paired across other markup, or lost", ORACLE, _unpaired),
    Cause("table left as text", ORACLE, _tables),
    Cause("rows of a table that a template opens or closes", ORACLE, lambda text: _ROW.sub("", text)),
    Cause(
        "heading with text behind it", ORACLE, lambda text: _NO_HEADING.sub(r"<nowiki>\g<0></nowiki>", text)
    ),
    Cause("heading of equals signs only", ORACLE, lambda text: _EQUALS_LINE.sub("", text)),
    Cause(
        "line mark behind a comment, or comment without end",
        ORACLE,
        lambda text: _COMMENT.sub("", _COMMENT_LINE.sub("", text)),
    ),
    Cause("file link in italics alone on its line", BOTH, lambda text: _FILE_LINK.sub("", text)),
    Cause("reference left as text", ORACLE, lambda text: _REFERENCE.sub("<ref/>", text)),
    Cause("blanks behind an address", ORACLE, lambda text: _ADDRESS.sub(r"\1 ", text)),
    Cause("heading tag without end", ORACLE, lambda text: _HEADING_TAG.sub("<br>", text)),
)
UNEXPLAINED = Cause("single cases", BOTH, lambda text: text)


@dataclass
class Tally:
    """Agreement on one kind of unit (links or paragraphs) over a dump."""

    shared: int = 0
    union: int = 0
    by_cause: Counter[str] = field(default_factory=Counter)

    def agreement(self, without: Iterable[str] = ()) -> float:
        left = self.union - sum(self.by_cause[name] for name in without)
        return self.shared / left if left else 1.0


@dataclass(frozen=True)
class Difference:
    """One link or paragraph that only one side gives."""

    page: str
    kind: str
    only: str
    cause: str
    verdict: str
    value: tuple[str, ...]
    context: str


Unit = tuple[str, ...]
Units = Counter[Unit]


def oracle_units(text: str, site: SiteInfo, *, styles: bool) -> dict[str, Units]:
    """The links (target, anchor) and paragraphs (text,) of a page by the oracle."""
    found = oracle.extract(text, site, styles=styles)
    return {
        "links": Counter((target, p.text[start:end]) for p in found for start, end, target in p.links),
        "paragraphs": Counter((p.text,) for p in found),
    }


def fast_units(text: str, site: SiteInfo) -> dict[str, Units]:
    """The same by the pipeline."""
    found = extract(text, site).paragraphs
    return {
        "links": Counter((link.target, p.text[link.start : link.end]) for p in found for link in p.links),
        "paragraphs": Counter((p.text,) for p in found),
    }


def folded(units: Units) -> Units:
    """The units without apostrophes, which the oracle loses where they stand beside bold or italics."""
    counts: Units = Counter()
    for unit, count in units.items():
        counts[tuple(part.replace("'", "") for part in unit)] += count
    return counts


def split(units: Units, explained: Units) -> tuple[Units, Units]:
    """(those that ``explained`` covers, the rest)."""
    budget, solved = Counter(explained), Counter[Unit]()
    for unit in sorted(units):
        key = tuple(part.replace("'", "") for part in unit)
        solved[unit] = min(units[unit], budget[key])
        budget[key] -= solved[unit]
    return +solved, units - solved


def explain(page: Page, site: SiteInfo) -> Iterator[tuple[str, Units, list[tuple[str, Cause, Unit, int]]]]:
    """For links and paragraphs: (kind, agreed units, [(side, cause, unit, count)])."""
    fast, slow = fast_units(page.text, site), oracle_units(page.text, site, styles=True)
    left = {(kind, "fast"): fast[kind] - slow[kind] for kind in fast}
    left |= {(kind, "oracle"): slow[kind] - fast[kind] for kind in fast}
    found: dict[str, list[tuple[str, Cause, Unit, int]]] = {kind: [] for kind in fast}

    def settle(kind: str, side: str, cause: Cause, explained: Units) -> None:
        solved, left[kind, side] = split(left[kind, side], explained)
        found[kind] += [(side, cause, unit, count) for unit, count in solved.items()]

    text = page.text
    for cause in CAUSES:
        if not any(left.values()):
            break
        text = cause.change(text)
        changed = oracle_units(text, site, styles=False)
        for kind in fast:
            if cause is CAUSES[0]:
                both = folded(left[kind, "fast"]) & folded(left[kind, "oracle"])
                settle(kind, "fast", cause, both)
                settle(kind, "oracle", cause, both)
            settle(kind, "fast", cause, folded(changed[kind]) - folded(slow[kind]))
            settle(kind, "oracle", cause, folded(slow[kind]) - folded(changed[kind]))
    for (kind, side), units in list(left.items()):
        settle(kind, side, UNEXPLAINED, folded(units))
    for kind in fast:
        yield kind, fast[kind] & slow[kind], found[kind]


def context(text: str, unit: Unit) -> str:
    """The source around the first place where a unit may come from."""
    place = max(text.find(unit[-1][:20]), 0)
    return text[max(0, place - _CONTEXT) : place + _CONTEXT]


def site_of(path: str) -> SiteInfo:
    """The dump's site; an excerpt that names another wiki in its file's name than in its head is of the former."""
    site = read_site_info(path)
    named = re.match(r"([a-z]{2,3})wiki-", Path(path).name)
    return replace(site, language=named[1]) if named else site


def measure(path: str) -> tuple[dict[str, Tally], list[Difference]]:
    """The agreement on one dump, and all differences."""
    site = site_of(path)
    tallies = {"links": Tally(), "paragraphs": Tally()}
    differences: list[Difference] = []
    for block in plan_blocks([path], 1 << 40):
        for page in read_pages(block, site, Counter(), allow_truncated=True):
            if not isinstance(page, Page) or page.redirect:
                continue
            for kind, agreed, found in explain(page, site):
                tally = tallies[kind]
                tally.shared += agreed.total()
                tally.union += agreed.total() + sum(count for *_, count in found)
                for side, cause, unit, count in found:
                    tally.by_cause[cause.name] += count
                    place = context(page.text, unit)
                    row = Difference(page.title, kind, side, cause.name, cause.verdict, unit, place)
                    differences += [row] * count
    return tallies, differences


def report(path: str, tallies: dict[str, Tally], differences: list[Difference], examples: int) -> None:
    faults = [cause.name for cause in CAUSES if cause.verdict == ORACLE]
    print(f"\n{Path(path).name}")
    for kind, tally in tallies.items():
        raw, fair = tally.agreement(), tally.agreement(faults)
        print(
            f"  {kind}: {tally.shared} of {tally.union} shared, {raw:.3%}, {fair:.3%} without the oracle's faults"
        )
        for cause in (*CAUSES, UNEXPLAINED):
            count = tally.by_cause[cause.name]
            if count:
                print(f"    {count:6} {cause.name} ({cause.verdict})")
            for row in [row for row in differences if (row.kind, row.cause) == (kind, cause.name)][:examples]:
                print(f"           {row.page}, only {row.only}: {' | '.join(row.value)[:150]!r}")


def summary(tally: Tally, differences: list[Difference], examples: int) -> dict[str, Any]:
    """One kind's agreement and its classes of differences, with examples; of single cases, all."""
    faults = [cause.name for cause in CAUSES if cause.verdict == ORACLE]
    classes = []
    for cause in (*CAUSES, UNEXPLAINED):
        rows = [asdict(row) for row in differences if row.cause == cause.name]
        shown = rows if cause is UNEXPLAINED else rows[:examples]
        if rows:
            classes.append(
                {"class": cause.name, "verdict": cause.verdict, "count": len(rows), "examples": shown}
            )
    return {
        "shared": tally.shared,
        "union": tally.union,
        "agreement": tally.agreement(),
        "agreement_without_faults_of_the_oracle": tally.agreement(faults),
        "classes": classes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dumps", nargs="+")
    parser.add_argument("--examples", type=int, default=1, help="differences to print for each class")
    parser.add_argument("--output", help="JSON file for all figures and differences")
    arguments = parser.parse_args()
    results = {}
    for path in arguments.dumps:
        tallies, differences = measure(path)
        report(path, tallies, differences, arguments.examples)
        results[Path(path).name] = {
            kind: summary(tally, [row for row in differences if row.kind == kind], arguments.examples)
            for kind, tally in tallies.items()
        }
    if arguments.output:
        versions = {name: version(name) for name in ("mwparserfromhell", "luke-from-wikipedia")}
        facts = {"date": datetime.date.today().isoformat(), "versions": versions, "dumps": results}
        Path(arguments.output).write_text(
            json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
