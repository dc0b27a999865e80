"""Each difference between LUKE's builder and this project, with a number and the reason."""

from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]
Rows = list[tuple[str, ...]]


def differences(found: Record, fixed: Sequence[Record], paper: Sequence[Record]) -> list[Record]:
    """Rows of (what, LUKE's builder, here, found, why) for a dump.

    Args:
        found: what `luke_compare.compare` gives.
        fixed: runs of our stages on the dump.
        paper: runs with the profile `paper`.
    """
    ours = fixed[-1]["stages"]
    drops = ours["ExtractPages"]["drops"]
    rows = [*_targets(found), *_text(found, drops), *_counting(found), *_sentences(found, ours)]
    rows += _sequences(found, ours, paper)
    return [dict(zip(("what", "LUKE's builder", "here", "found", "why"), row, strict=True)) for row in rows]


def _targets(found: Record) -> Rows:
    kinds = {row["LUKE's links"]: row["links"] for row in found["kinds"]}
    steps = {row["cause"]: row["links"] for row in found["steps"]}
    fragments = sum(count for kind, count in kinds.items() if kind.startswith("with a fragment"))
    return [
        (
            "fragments",
            "`[[A#b]]` counts for the title `A#b`, which no page has",
            "counts for A",
            f"{fragments:,} links; {steps['the #fragment is removed']:+,} to entities",
            "the title is taken as it is written",
        ),
        (
            "redirects of redirects",
            "one hop (wikipedia2vec 1.x; 2.0 makes up to ten)",
            "to the end, loops are named",
            f"{steps['redirects are followed to their end']:+,} links to entities",
            "a second redirect is no page",
        ),
        (
            "titles",
            "first letter upper, `_` to blank",
            "as MediaWiki: blanks, entities, namespaces, the wiki's case",
            f"{steps['titles are normalised as MediaWiki does']:+,} links to entities",
            "",
        ),
    ]


def _text(found: Record, drops: Record) -> Rows:
    kinds = {row["LUKE's links"]: row["links"] for row in found["kinds"]}
    return [
        (
            "category links",
            "annotations; 1.x: blanked where the text shows `Category:`; 2.0 strips that prefix from the text",
            "no text, no annotation",
            "; ".join(f"{count:,} {kind}" for kind, count in found["categories"].items())
            + f"; {drops.get('links:category', 0):,} cut here",
            "MediaWiki shows no category where its link stands",
        ),
        (
            "other languages, other namespaces",
            "text and annotation as any link",
            "no text, no annotation (interlanguage); text alone (others)",
            f"{kinds.get('with a colon (other languages, other namespaces), no such page', 0):,} links there; "
            f"{sum(drops.get(f'links:{k}', 0) for k in ('interlanguage', 'interwiki', 'other_namespace')):,} here",
            "their targets are no articles, and `de:Wort` is no English",
        ),
        (
            "captions of files",
            "1.x: the caption is the text of a link to the file; 2.0: cut",
            "cut (profile paper: a paragraph of its own)",
            f"{drops.get('links:file', 0):,} files with {drops.get('links:in_files', 0):,} links in them",
            "a caption is no sentence of the running text",
        ),
        (
            "tables, references, galleries, templates",
            "cut by the tree of mwparserfromhell",
            "cut by bounded patterns",
            _named(drops, ("in_tables", "in_references", "in_galleries", "in_templates")),
            "no running text",
        ),
        (
            "headings",
            "2.0: the text of a section begins with its heading; 1.x: none",
            "the column `section`",
            f"{drops.get('links:in_heading', 0):,} links in headings",
            "a heading is no sentence",
        ),
    ]


def _named(drops: Record, kinds: Sequence[str]) -> str:
    return ", ".join(f"{drops.get(f'links:{kind}', 0):,} links {kind.replace('_', ' ')}" for kind in kinds)


def _counting(found: Record) -> Rows:
    entities, same = found["entities"], found["overlap"][-1]
    return [
        (
            "entities",
            "titles of the database, but `Category:...`",
            "pages of namespace 0 that are no redirects",
            f"{entities['one hop']:,} with one hop, {entities['ten hops']:,} with ten, {entities['ours']:,} here; "
            f"{same['in both']:,} in both, {same['the same count']:,} with the same count",
            "the links above",
        ),
        (
            "ties",
            "in the order in which worker processes happened to be done",
            "by title",
            f"{found['tied']['one hop']:,} of {entities['one hop']:,} entities share their count with another",
            "ids differ from run to run there; here equal input gives equal ids",
        ),
    ]


def _sentences(found: Record, ours: Record) -> Rows:
    kept, facts = found["sequences"]["[UNK]"], ours["BuildSequences"]["facts"]
    return [
        (
            "paragraphs",
            "2.0: a section; 1.x: a line",
            "a line, hard-wrapped lines joined",
            f"{kept['paragraphs']:,} sections, {ours['ExtractPages']['rows']['paragraphs']:,} paragraphs here",
            "sentences that cross a line's end stay whole",
        ),
        (
            "sentences",
            "OpenNLP, spans in UTF-16 units",
            "sentencex, spans in code points",
            f"{found['source']['paragraphs_beyond_bmp']:,} paragraphs with characters beyond the BMP; "
            f"{kept['sentences_read']:,} sentences there by sentencex, {facts['sentences_read']:,} here",
            "behind such a character every later span was shifted; the splitter itself was not compared",
        ),
        (
            "link trails",
            "`[[cat]]s` is the mention `cat`, then `s` is tokenised apart",
            "the mention `cats`",
            f"{found['source']['link_trails']:,} links with letters behind them",
            "MediaWiki shows one linked word",
        ),
    ]


def _sequences(found: Record, ours: Record, paper: Sequence[Record]) -> Rows:
    dropped, kept = found["sequences"]["dropped"], found["sequences"]["[UNK]"]
    facts, drops = ours["BuildSequences"]["facts"], ours["BuildSequences"]["drops"]
    old = paper[-1]["stages"] if paper else None
    profile = "the profile paper did not run"
    if old:
        profile = (
            f"profile paper: {old['ExtractPages']['rows']['links']:,} links, "
            f"{old['BuildEntityVocab']['rows']['entities']:,} entities, {_size(old['BuildSequences']['facts'])}; "
            f"fixed: {ours['ExtractPages']['rows']['links']:,} links, "
            f"{ours['BuildEntityVocab']['rows']['entities']:,} entities"
        )
    return [
        (
            "links to no entity",
            "dropped by default (paper: [UNK])",
            "[UNK] (profile paper: dropped)",
            f"LUKE's text and vocabulary, dropped: {_size(dropped)}; as [UNK]: {_size(kept)}",
            "sequences without any link are left out, so that dropping links drops sequences",
        ),
        (
            "links across a sentence's end",
            "dropped",
            "dropped and counted",
            f"{kept.get('dropped links:crosses_sentence', 0):,} there, {drops.get('links:crosses_sentence', 0):,} here",
            "",
        ),
        (
            "sequences",
            "one gzip of TFRecords, pages shuffled without a seed, mentions padded to 30 positions",
            "Arrow shards in the dump's order; held-out pages apart",
            f"here: {_size(facts)}",
            "the loader shuffles with a seed",
        ),
        ("both profiles of this project", "", "", profile, "the profile paper does what 1.x did"),
    ]


def _size(facts: Record) -> str:
    return (
        f"{facts.get('sequences', 0):,} sequences, {facts.get('words', 0):,} words, "
        f"{facts.get('annotations', 0):,} annotations ({facts.get('unknown_entities', 0):,} [UNK])"
    )
