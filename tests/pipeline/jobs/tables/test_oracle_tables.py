"""Titles, vocabulary, mentions, contexts and sequences as the stages make them, beside the oracle's, row for row."""

import shutil
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from model.presets import over
from pipeline import schemas, storage
from pipeline.dump.pages import read_site_info
from pipeline.lookup.contexts import ContextTable
from pipeline.lookup.page_names import PageNames
from pipeline.lookup.targets import Targets
from tests.support import oracle_contexts
from tests.support import oracle_tables as oracle
from tests.support.oracle_sequences import SequenceMaker, Tokenizer
from tests.support.oracle_tables import Pages, Row
from tests.support.stages import IN_BLOCKS, run_in_process, run_of
from workflows import (
    BuildContexts,
    BuildEntityVocab,
    BuildMentionTable,
    BuildSequences,
    ExtractPages,
    ResolveLinks,
    ResolveRedirects,
)
from workflows.base.stage import Stage
from workflows.run.tables import Corpus

pytestmark = pytest.mark.slow

KINDS = (ExtractPages, ResolveRedirects, ResolveLinks, BuildEntityVocab, BuildMentionTable, BuildSequences)
REAL = "enwiki-2016-206"
TIGHT = {"corpus": {"vocab_size": 8, "missing_pages": "in", "held_out": 0.3}, "sequences": {"max_words": 48}}


@dataclass(frozen=True)
class Case:
    """A dump, values of the run, and the reasons for which something has to be dropped."""

    dump: str
    profile: str
    drops: frozenset[str]
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.dump}-{self.profile}{'-tight' if self.values else ''}"


NO_LINKS = frozenset({"sentences:no_links", "sequences:no_links"})
LENGTH = frozenset({"sentences:too_short", "links:sentence_too_short"})
LONG = frozenset({"sentences:too_long", "links:sentence_too_long"})
CASES = [
    Case("wiki-40", "fixed", NO_LINKS),
    Case("wiki-40", "paper", NO_LINKS | {"links:out_of_vocabulary"}),
    Case(REAL, "fixed", NO_LINKS | LENGTH),
    Case(REAL, "paper", NO_LINKS | LENGTH | {"links:out_of_vocabulary"}),
    Case(REAL, "fixed", LENGTH | LONG, TIGHT),
]


class Made:
    """The tables that the stages made of a case, and those that the oracle makes of the same pages."""

    def __init__(self, case: Case, stages: Mapping[type[Stage], Stage]) -> None:
        self.case = case
        self.stages = stages

    def paths(self, kind: type[Stage], table: str) -> list[str]:
        """The files of a stage's table."""
        stage = self.stages[kind]
        return stage.manifest().paths(stage.folder, table)

    @cached_property
    def pages(self) -> Pages:
        return Pages.read(self.stages[ExtractPages].folder, self.case.profile)

    @cached_property
    def titles(self) -> dict[str, Row]:
        return oracle.resolve_titles(self.pages, self.case.profile)

    @cached_property
    def vocab(self) -> list[Row]:
        given = {"size": self.corpus.vocab_size, "missing_pages": self.corpus.missing_pages}
        elsewhere = read_site_info(self.corpus.dump).other_prefixes
        return oracle.build_vocab(self.pages, self.titles, elsewhere=elsewhere, **given)

    @property
    def corpus(self) -> Corpus:
        """The values of the run for the corpus."""
        return self.stages[BuildSequences].settings.corpus


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """A work directory that has the first case."""
    return shutil.copytree(corpus, tmp_path_factory.mktemp("tables") / "work")


@pytest.fixture(scope="module", params=CASES, ids=str)
def made(request: pytest.FixtureRequest, workdir: Path) -> Made:
    case = request.param
    # Blocks are small enough for every table to have several files.
    corpus: dict[str, Any] = {**IN_BLOCKS, "profile": case.profile}
    sequences: dict[str, Any] = {"max_dropped_sentences": 1}
    if case.dump == REAL:
        data = request.getfixturevalue("shared") / "data"
        corpus |= {"dump": str(data / "wikipedia" / f"{REAL}.xml.bz2"), "block_size": 512 << 10}
        sequences["tokenizer"] = str(data / "roberta-tokenizer")
    tables = over({"corpus": corpus, "sequences": sequences}, case.values)
    run = run_of(workdir, **tables, machine={"processes": 1})
    stages = {kind: kind(settings=run) for kind in KINDS}
    run_in_process(stages[BuildSequences])
    run_in_process(stages[BuildMentionTable])
    return Made(case, stages)


def parquet_rows(paths: list[str], *order: str) -> list[Row]:
    """The rows of all parts together in the table's order; each part has to be in that order."""

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in order)

    parts = [pq.read_table(path).to_pylist() for path in paths]
    assert all(part == sorted(part, key=key) for part in parts)
    return sorted((row for part in parts for row in part), key=key)


def same(found: list[Row], expected: list[Row]) -> bool:
    """Return whether the rows are equal, and are any; what differs first is printed."""
    for number, (row, wanted) in enumerate(zip(found, expected, strict=False)):
        if row != wanted:
            print(f"row {number}: found {row}, wanted {wanted}")
            return False
    print(f"{len(found)} rows, wanted {len(expected)}")
    return len(found) == len(expected) > 0


def test_tables_have_their_schemas(made: Made) -> None:
    for kind in made.stages:
        for name, table in schemas.TABLES[kind.__name__].items():
            paths = [path for path in made.paths(kind, name) if not path.endswith(".tries")]
            # No page was lost in BuildSequences, and no links to other languages were wanted: else there are these.
            assert bool(paths) == ((kind, name) not in ((BuildSequences, "rejected"), (ExtractPages, "language_links")))
            for path in paths:
                found = storage.open_arrow(path).schema if path.endswith("arrow") else pq.read_schema(path)
                assert found == table.schema, path
                assert not found.metadata


def test_titles(made: Made) -> None:
    found = parquet_rows(made.paths(ResolveRedirects, "titles/"), "title")
    assert same(found, [made.titles[title] for title in sorted(made.titles)])


def test_links(made: Made) -> None:
    order = ("page_id", "mention", "title", "status")
    expected = oracle.links(made.pages, made.titles)
    found = parquet_rows(made.paths(ResolveLinks, "links/"), *order)
    assert same(found, sorted(expected, key=lambda row: tuple(row[name] for name in order)))
    manifest = made.stages[ResolveLinks].manifest()
    assert manifest.facts["statuses"] == oracle.coverage(made.pages, made.titles)
    all_links = made.stages[ExtractPages].manifest().rows["links"]
    assert manifest.drops == +Counter({"links:same_page": all_links - len(expected)})


def test_vocabulary(made: Made) -> None:
    expected = [row | {"qid": None} for row in made.vocab]
    assert same(parquet_rows(made.paths(BuildEntityVocab, "entity_vocab.parquet"), "entity_id"), expected)
    facts = made.stages[BuildEntityVocab].manifest().facts
    assert facts["links_by_status"] == oracle.coverage(made.pages, made.titles)


def test_mention_table(made: Made) -> None:
    found = parquet_rows(made.paths(BuildMentionTable, "mentions/"), "mention", "title")
    expected = oracle.mention_table(made.pages, made.titles, made.vocab, made.case.profile)
    assert same(found, expected)
    assert any(row["entity_id"] is not None and row["link_probability"] < 1 for row in found)


def test_page_names(made: Made) -> None:
    found = parquet_rows(made.paths(BuildMentionTable, "page_names/"), "page")
    expected = oracle.page_names(made.pages, made.titles, made.case.profile)
    assert same(found, expected)
    stage = made.stages[BuildMentionTable]
    assert stage.manifest().drops.get("names:ambiguous_on_page", 0) == sum(row["ambiguous"] for row in expected)
    names = PageNames(stage.folder, stage.manifest())
    for row in expected:
        assert titles_of(names, row["page"]) == {each["mention"]: each["title"] for each in row["names"]}
    for title, row in made.titles.items():
        reached = row["canonical"] if row["status"] in ("page", "redirect") else None
        assert titles_of(names, title) == (titles_of(names, reached) if reached else None)


def test_targets(made: Made) -> None:
    """Every page, and whatever else is linked; by title, by redirect, and by their letters."""
    stage = made.stages[BuildMentionTable]
    found = parquet_rows(made.paths(BuildMentionTable, "targets/"), "title")
    mentions = parquet_rows(made.paths(BuildMentionTable, "mentions/"), "mention", "title")
    expected = oracle.targets(made.pages, made.vocab, mentions)
    assert same(found, expected)
    assert {row["page_id"] < 0 for row in found} == {True, False}
    rows, targets = {row["title"]: row for row in expected}, Targets(stage.folder, "en")
    ends = {title: oracle.follow(title, made.titles)[0] for title in {*made.titles, *rows}}
    alike: dict[str, set[str]] = {}
    for title, end in ends.items():
        if end in rows and (letters := oracle.letters_of(title)):
            alike.setdefault(letters, set()).add(end)
    for title, end in ends.items():
        target = targets.get(title)
        row = rows.get(end)
        assert (target and (target.title, target.page_id or -1, target.entity_id, target.qid)) == (
            row and (*row.values(),)
        )
        reached = {each.title for each in targets.alike(title)}
        assert reached == alike.get(oracle.letters_of(title), set()), title


@pytest.mark.parametrize("made", [CASES[0], CASES[-1]], ids=str, indirect=True)
def test_contexts(made: Made) -> None:
    stage = made.stages[BuildSequences].clone(BuildContexts)
    run_in_process(stage)
    manifest = stage.manifest()
    paths = manifest.paths(stage.folder, "contexts/")
    assert len(paths) > 1 or made.case.dump == REAL
    assert all(pq.read_schema(path) == schemas.CONTEXTS.schema for path in paths)
    found = parquet_rows(paths, "title")
    expected = oracle_contexts.contexts(made.pages, made.titles, held_out=made.corpus.held_out)
    weights, wanted = ([row.pop("weights") for row in rows] for rows in (found, deepcopy(expected.rows)))
    assert [*map(len, weights)] == [*map(len, wanted)]
    assert_allclose([*chain(*weights)], [*chain(*wanted)], rtol=1e-6)
    assert same(found, [{name: row[name] for name in ("title", "words")} for row in expected.rows])
    words = storage.open_arrow(f"{stage.folder}/words.arrow")
    assert words.schema == schemas.WORDS.schema
    assert words.to_pylist() == [{"word": word, "paragraphs": count} for word, count in sorted(expected.words.items())]
    assert manifest.facts["paragraphs"] == expected.paragraphs
    assert manifest.drops == expected.drops
    drops = {"paragraphs:held_out", "links:held_out"} if made.case.dump == REAL else {"links:enough"}
    assert {"words:rare"} | drops <= manifest.drops.keys()
    assert max(map(len, wanted)) == 50
    assert_titles_of_pages(stage, expected)
    text, titles = made.pages.paragraphs[0]["text"], [row["title"] for row in found[:50]]
    (cosines,) = ContextTable(stage.folder).cosines(text, [titles])
    assert cosines == pytest.approx([expected.cosine(text, title) for title in titles], abs=1e-6)


def assert_titles_of_pages(stage: BuildContexts, expected: oracle_contexts.Contexts) -> None:
    """The content of each page, by the rows of contexts.arrow, and nearly the vectors that this gives."""
    paths = stage.manifest().paths(stage.folder, "page_titles/")
    assert all(pq.read_schema(path) == schemas.PAGE_TITLES.schema for path in paths)
    order = {title: row for row, title in enumerate(titles_in_order(stage))}
    of_oracle = [order[row["title"]] for row in expected.rows]
    wanted = [
        {"page_id": row["page_id"], "titles": sorted(of_oracle[title] for title in row["titles"])}
        for row in expected.page_titles
    ]
    assert same(parquet_rows(paths, "page_id"), wanted)
    vectors = storage.open_arrow(f"{stage.folder}/vectors.arrow")
    assert vectors.schema == schemas.TITLE_VECTORS.schema
    assert len(vectors) == len(order)
    # Of some titles, to rounding where there are no more pages than directions.
    step = max(1, len(order) // 300)
    found = np.array(vectors.column("vector")[::step].to_pylist(), np.float64)
    theirs = oracle_contexts.vectors([row["titles"] for row in wanted], len(order))[::step]
    pairs = np.triu_indices(len(found), 1)
    assert np.corrcoef((found @ found.T)[pairs], (theirs @ theirs.T)[pairs])[0, 1] > 0.9


def titles_in_order(stage: BuildContexts) -> list[str]:
    """The titles of contexts.arrow, which are those of the table's files, one after the other."""
    paths = stage.manifest().paths(stage.folder, "contexts/")
    return [title for path in paths for title in pq.read_table(path, columns=["title"])["title"].to_pylist()]


def titles_of(names: PageNames, page: str) -> Mapping[str, str] | None:
    found = names.get(page)
    return found.titles if found else None


def test_sequences(made: Made) -> None:
    stage = made.stages[BuildSequences]
    manifest = stage.manifest()
    maker = SequenceMaker(
        Tokenizer(stage.tokenizer_folder()),
        oracle.aliases(made.titles, made.vocab),
        manifest.facts["language"],
        made.case.profile,
        **stage.limits(),
        held_out=made.corpus.held_out,
    )
    expected = [maker.block(block) for block in made.pages.blocks]
    for part in ("sequences", "held_out"):
        paths = manifest.paths(stage.folder, f"{part}/")
        assert len(paths) == len(expected) > 1
        for path, block in zip(paths, expected, strict=True):
            with pa.memory_map(path) as source:
                rows = pa.ipc.open_stream(source).read_all().to_pylist()
            assert rows == block[part], path
    assert sum(len(block["sequences"]) for block in expected) > 20
    assert manifest.drops == +maker.drops
    assert made.case.drops <= manifest.drops.keys()
