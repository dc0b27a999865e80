"""Documents of one's own: linked in blocks as a dump's pages are, and read for sequences beside or instead of them."""

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import storage
from pipeline.lookup.contexts import words_of
from pipeline.lookup.mentions import MentionTable
from pipeline.storage.blocks import Block, PageMarker
from tasks.linking.__main__ import main
from tasks.linking.certainty import Certainty, write_certainty
from tasks.linking.corpora import documents as documents_module
from tasks.linking.corpora import linking
from tasks.linking.corpora.documents import check_beginnings, plan_blocks, read_block
from tasks.linking.corpora.linking import DocumentLinker, cut_paragraphs, page_number
from tasks.linking.linker import basis_of
from tasks.linking.open import LinkerSettings, open_linker
from tests.support import DATA
from tests.support.contexts import write_context_table
from tests.support.manifests import write_manifest
from tests.support.mentions import Table, pages_of_dump, write_mentions
from tests.support.stages import run_in_process, run_of
from workflows import BuildSequences, ExtractPages, LinkDocuments
from workflows.stages.linking.documents import check_ner

SETTINGS = LinkerSettings("", finds_all=True, device="cpu", min_probability=0.0)  # as the stage has them


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Table, list[dict[str, str]]]:
    """A mention table of a small wiki, and its pages' texts as documents."""
    folder = tmp_path_factory.mktemp("mentions")
    pages = pages_of_dump(DATA / "wiki-40.xml.bz2", 6000)
    of_bay = [
        link
        for row in pages.blocks[0]
        for link in row["links"]
        if row["text"][link["start"] : link["end"]] == "Gull Bay"
    ]
    of_bay[0]["target"] = "Elsewhere"  # so that one name is not sure
    table = write_mentions(folder, pages, size=20)
    texts = [
        {"id": f"page {number}", "text": "\n\n".join(row["text"] for row in rows)}
        for number, rows in groupby(pages.blocks[0], key=lambda row: row["page_id"])
    ]
    return folder, table, texts


def write_lines(folder: Path, documents: Sequence[object]) -> Path:
    folder.mkdir(parents=True)
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in documents)
    (folder / "a.jsonl").write_text(text, encoding="utf-8")
    return folder


class Here:
    """Runs a job's work on each block in this process, in any order."""

    def __init__(self, maker: Any, folder: Path) -> None:
        self.maker, self.folder = maker, folder
        storage.make_folder(str(folder / storage.blocks.BLOCKS))

    def __call__(self, job: str, blocks: Sequence[Block], arguments: Mapping[str, Any]) -> dict[int, storage.Result]:
        work, found = self.maker(arguments), {}
        for block in random.sample(list(blocks), len(blocks)):
            marker = PageMarker(str(self.folder / "page"))
            found[block.number] = work(block, str(self.folder), marker)
            marker.close()
        return found


def link(
    documents: Path, mentions: Path, folder: Path, *, size: int = 1 << 20, rejected: float = 0.001, **changes: Any
) -> storage.Result:
    settings = replace(SETTINGS, mentions=str(mentions), **changes)
    run = Here(DocumentLinker, folder)
    return linking.build(run, str(folder), str(documents), settings, block_bytes=size, max_rejected=rejected)


def stage_of(work: Path, texts: object, table: object = "", size: Any = "auto", **linking: Any) -> Any:
    """The stage LinkDocuments in a work directory, by two processes, with the values of [linking]."""
    linking |= {"documents": str(texts), "mentions": str(table)}
    tables = {"corpus": {"block_size": size}, "machine": {"processes": 2}}
    return LinkDocuments(settings=run_of(work, linking=linking, **tables))


def rows(folder: Path, result: storage.Result, table: str) -> list[dict[str, Any]]:
    paths = [each.path for each in result.files if each.path.startswith(f"{table}/")]
    return [row for path in paths for row in storage.read_rows(str(folder / path))]


def expected(mentions: Path, document: Mapping[str, str], least: float = 0.0) -> list[dict[str, Any]]:
    """The paragraphs of a document by the mention table alone, line by line; lines have no mention in common."""
    table, found = MentionTable(str(mentions)), []
    for line in document["text"].split("\n"):
        if text := line.strip():
            names = [each for each in table.find(text) if each[2].link_probability >= 0.01]
            links = [
                {"start": start, "end": end, "target": name.candidates[0].title}
                for start, end, name in names
                if name.link_probability * name.candidates[0].commonness >= least
            ]
            found.append({"text": text, "section": "", "links": links})
    numbers = {"page_id": page_number(document["id"]), "title": document["id"]}
    return [{**numbers, "paragraph": place, **each} for place, each in enumerate(found)]


def test_links_are_those_of_the_mention_table(wiki: Any, tmp_path: Path) -> None:
    mentions, _, documents = wiki
    folder = write_lines(tmp_path / "texts", documents)
    result = link(folder, mentions, tmp_path / "all")
    found = rows(tmp_path / "all", result, "paragraphs")
    assert found == [row for each in documents for row in expected(mentions, each)]
    links = sum(len(row["links"]) for row in found)
    assert links == result.rows["links"] > 100
    assert [row["title"] for row in rows(tmp_path / "all", result, "pages")] == [each["id"] for each in documents]

    sure = link(folder, mentions, tmp_path / "sure", min_probability=0.9)  # guesses may have 0.05
    kept = rows(tmp_path / "sure", sure, "paragraphs")
    assert kept == [row for each in documents for row in expected(mentions, each, 0.9)]
    assert 0 < sure.drops["links:below_min_probability"] == links - sure.rows["links"]


def test_contexts_and_calibrations_have_the_say_that_they_have_in_link(
    wiki: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contexts with a document's words make another page the likelier one there; the file's threshold is not taken."""
    mentions, _, documents = wiki
    about = next(each["text"] for each in documents if "Gull Bay" in each["text"])
    words = dict.fromkeys(words_of(about), 1.0)
    contexts = write_context_table(tmp_path / "contexts", {"Elsewhere": words}).folder
    folder, calibration = write_lines(tmp_path / "texts", documents), tmp_path / "calibration.json"
    given = ["--mentions", str(mentions), "--contexts", contexts]
    linker = open_linker(replace(SETTINGS, mentions=str(mentions), contexts=contexts))
    certainty = Certainty(context_weight=40.0, temperature=2.0, min_probability=0.9)
    write_certainty(calibration, certainty, basis_of(linker), {})
    command = ["link", *given, "--calibration", str(calibration), str(folder / "a.jsonl")]
    main([*command, "--min-probability", "0.3"])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    chosen = {"contexts": contexts, "calibration": str(calibration)}
    result = link(folder, mentions, tmp_path / "linked", min_probability=0.3, **chosen)
    found = rows(tmp_path / "linked", result, "paragraphs")
    ends = [link["target"] for row in found for link in row["links"]]
    assert ends == [each["title"] for of in told for each in of["mentions"] if each["title"]]
    assert "Elsewhere" in ends
    without = link(folder, mentions, tmp_path / "without", min_probability=0.3)
    assert "Elsewhere" not in str(rows(tmp_path / "without", without, "paragraphs"))
    everything = link(folder, mentions, tmp_path / "everything", **chosen)
    assert result.drops["links:below_min_probability"] == everything.rows["links"] - result.rows["links"] > 0

    with pytest.raises(ValueError, match=r"calibration\.json: made for contexts \w+, used with none"):
        link(folder, mentions, tmp_path / "other", calibration=str(calibration))
    with pytest.raises(ValueError, match=r"^linking\.linker .*: made by BuildMentionTable; wanted the folder of"):
        stage_of(tmp_path, folder, linker=str(mentions)).check()


def test_tables_and_small_blocks_give_the_same(wiki: Any, tmp_path: Path) -> None:
    mentions, _, documents = wiki
    lines = write_lines(tmp_path / "lines", documents)
    (tmp_path / "table").mkdir()
    table = pa.Table.from_pylist([{**each, "number": 1} for each in documents])
    pq.write_table(table, tmp_path / "table/a.parquet", row_group_size=7)
    whole, small = tmp_path / "whole", tmp_path / "small"
    wanted = link(lines, mentions, whole)
    of_table = link(tmp_path / "table", mentions, small, size=3000)
    pieces = link(lines, mentions, tmp_path / "pieces", size=3000)
    for name in ("pages", "paragraphs"):
        found = rows(whole, wanted, name)
        assert rows(small, of_table, name) == rows(tmp_path / "pieces", pieces, name) == found
    assert min(len(of_table.files), len(pieces.files)) > len(wanted.files)
    assert wanted.rows == of_table.rows == pieces.rows
    assert wanted.drops == of_table.drops == pieces.drops


BROKEN = [
    (b"\xff", "not_utf8", "a.jsonl:3: byte 0 of the line is not UTF-8"),
    (b'{"id": 1', "no_object", "a.jsonl:3: not JSON"),
    (b"[1]", "no_object", "a.jsonl:3: found [1]; wanted a JSON object"),
    (b'{"text": "x"}', "no_id", "a.jsonl:3: id is None; wanted a text or a whole number"),
    (b'{"id": true, "text": "x"}', "no_id", "a.jsonl:3: id is True"),
    (b'{"id": 1}', "no_text", "a.jsonl:3: no field 'text'"),
    (b'{"id": 1, "text": 2}', "no_text", "a.jsonl:3: text is 2; wanted a text"),
]


@pytest.mark.parametrize(("line", "reason", "message"), BROKEN)
def test_a_broken_line_is_named_and_counted(wiki: Any, tmp_path: Path, line: bytes, reason: str, message: str) -> None:
    good = [json.dumps({"id": number, "text": f"Line {number}."}).encode() for number in range(9)]
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.jsonl").write_bytes(b"\n".join([good[0], b"", line, *good[1:]]))
    folder = tmp_path / "linked"
    result = link(tmp_path / "texts", wiki[0], folder, size=16)
    assert result.drops == {f"rejected:{reason}": 1}
    [row] = rows(folder, result, "rejected")
    assert row["reason"] == reason
    assert row["message"].startswith(message)
    assert [row["title"] for row in rows(folder, result, "pages")] == [str(number) for number in range(9)]

    (tmp_path / "texts/a.jsonl").write_bytes(b"\n".join([good[0], b"", line, line]))
    with pytest.raises(ValueError, match=r"2 of 3 pages .* were dropped .* corpus.max_rejected .*; the"):
        link(tmp_path / "texts", wiki[0], tmp_path / "again")


GOOD = {"id": 1, "text": "x"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"id": 1, "body": "x"}, r"no field 'text'; wanted a text; found \[\"id\", \"body\"\]"),
        ({"name": "1", "text": "x"}, "id is None; wanted a text or a whole number"),
        ([GOOD], r"found \[\{\"id\": 1, .*; wanted a JSON object"),
        ("Ein Satz, kein JSON.", 'found "Ein Satz'),
    ],
)
def test_a_file_without_a_document_ends_the_work_before_it_begins(tmp_path: Path, line: object, said: str) -> None:
    def run(*_: object) -> dict[int, storage.Result]:
        raise AssertionError("the work begins")

    def build(rejected: float = 0.5) -> None:
        options: Any = {"block_bytes": 4096, "max_rejected": rejected}
        linking.build(run, str(tmp_path / "linked"), str(tmp_path / "texts"), SETTINGS, **options)

    folder = write_lines(tmp_path / "texts", [GOOD])
    (folder / "a.jsonl").rename(folder / "0.jsonl")
    (folder / "b.jsonl").write_text("\n" + f"{json.dumps(line)}\n" * 1001 + json.dumps(GOOD))
    with pytest.raises(ValueError, match=f"^none of the first 1,000 .*/b.jsonl is .*: b.jsonl:2: {said}"):
        build()
    with pytest.raises(AssertionError, match="the work begins"):
        build(rejected=1.0)
    for content in (f"{json.dumps(line)}\n" * 999 + json.dumps(GOOD), f"{json.dumps(line)}\n" * 999, ""):
        (folder / "b.jsonl").write_text(content)
        with pytest.raises(AssertionError, match="the work begins"):
            build()


def test_a_table_without_a_document_ends_the_work_before_it_begins(wiki: Any, tmp_path: Path) -> None:
    rows = [{"id": "1", "text": None}] * 1500
    table = pa.Table.from_pylist(rows, pa.schema({"id": pa.string(), "text": pa.string()}))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=300)
    with pytest.raises(ValueError, match=r"rows of .*a\.parquet is a document; .*\.parquet: row 1: text is"):
        link(tmp_path, wiki[0], tmp_path / "linked", size=400)


@pytest.mark.parametrize("size", [16, 100, 1 << 20])
def test_a_line_that_never_ends_is_held_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(documents_module, "_LONGEST", 60)
    monkeypatch.setattr(documents_module, "_PIECE", 7)
    path = tmp_path / "a.jsonl"
    good, long = json.dumps(GOOD), json.dumps({"id": 2, "text": "y" * 300})
    lines = [good, long, good, " " * 90 + good]
    for end in ("", "\n"):
        path.write_text("\n".join(lines) + end)
        found = [each for block in plan_blocks([str(path)], size) for each in read_block(block, "a.jsonl")]
        assert [each.reason for each in found] == ["", "too_long", "", "too_long"]
        assert [each.message.split(";")[0] for each in found[1::2]] == [
            f"a.jsonl:{number}: a line of 60 bytes or more" for number in (2, 4)
        ]
    path.write_text("\n".join([long, *lines]))
    check_beginnings(plan_blocks([str(path)], size), str(tmp_path))
    path.write_text(json.dumps([GOOD] * 30))
    with pytest.raises(ValueError, match=r"the first 1 lines .* a\.jsonl:1: a line of 60 .* no array of them"):
        check_beginnings(plan_blocks([str(path)], size), str(tmp_path))


def test_folders_that_hold_no_documents(wiki: Any, tmp_path: Path) -> None:
    folder = write_lines(tmp_path / "texts", [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}])
    with pytest.raises(ValueError, match=r"the id '1' is there twice; wanted one for each document"):
        link(folder, wiki[0], tmp_path / "linked")
    (folder / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match=r"found notes\.txt; wanted files of JSON objects a line"):
        link(folder, wiki[0], tmp_path / "linked")
    (folder / "notes.txt").rename(folder / "notes.parquet")
    with pytest.raises(ValueError, match=r"notes\.parquet: a broken table"):
        link(folder, wiki[0], tmp_path / "linked")
    pq.write_table(pa.table({"id": [1], "texts": ["x"]}), folder / "notes.parquet")
    with pytest.raises(ValueError, match=r"notes\.parquet: no column 'text'; wanted a table with id and"):
        link(folder, wiki[0], tmp_path / "linked")
    with pytest.raises(ValueError, match=r"^linking\.documents: names no folder"):
        stage_of(tmp_path, "").check()
    with pytest.raises(ValueError, match=r"linking.ner .*/no: no config\.json there; wanted that of"):
        stage_of(tmp_path, folder, ner=str(tmp_path / "no")).check()


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"task": "ner", "model": {}}, ""),
        ({"model_type": "luke", "architectures": ["LukeForEntitySpanClassification"]}, ""),
        ({"task": "entity_typing", "model": {}}, "was fine-tuned for entity_typing"),
        ({"model_type": "luke", "architectures": ["LukeForMaskedLM"]}, "was not fine-tuned"),
        ({"model_type": "roberta", "architectures": ["RobertaModel"]}, "is a roberta, which has no entities"),
        (
            {"model_type": "luke", "architectures": ["LukeForEntityClassification"]},
            "was fine-tuned for LukeForEntityClassification",
        ),
    ],
)  # fmt: skip
def test_a_model_for_something_else_is_refused_before_the_work(
    tmp_path: Path, config: dict[str, Any], found: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").touch()  # which nobody reads
    said = rf"^linking.ner .*: the model {found}; wanted "
    with pytest.raises(ValueError, match=said) if found else nullcontext():
        check_ner(str(tmp_path))


def test_what_finds_mentions_makes_another_corpus(wiki: Any, tmp_path: Path) -> None:
    """Not where its folder is, and not when it was made."""
    folder = write_lines(tmp_path / "texts", wiki[2])
    hashes = [stage_of(tmp_path, folder).hash8]
    for number, (words, language) in enumerate((("a", ""), ("b", ""), ("b", "de"), ("b", "de"))):
        model = tmp_path / f"model-{number}"
        (model / "tokenizer").mkdir(parents=True)
        (model / "tokenizer/vocab.json").write_text(words)
        (model / "run.json").write_text(f"it ran at {number}")
        hashes.append(stage_of(tmp_path, folder, ner=str(model), language=language).hash8)
    assert len({*hashes}) == 4
    assert hashes[-1] == hashes[-2]


@given(
    lines=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=9)),
    size=st.integers(1, 60),
)
def test_blocks_have_each_line_once(tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    wanted = [(str(number), text) for number, text in enumerate(lines)]
    path.write_text(
        "\n".join(json.dumps({"id": each, "text": text}, ensure_ascii=False) for each, text in wanted), "utf-8"
    )
    found = [each for block in plan_blocks([str(path)], size) for each in read_block(block, "a")]
    assert [(each.id, each.text) for each in found] == wanted
    assert not any(each.reason for each in found)


@given(st.data())
def test_cut_paragraphs_keep_their_links(data: st.DataObject) -> None:
    text = data.draw(st.text("ab \n\t\u2028"))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))))
    spans = [
        pair for pair in zip(cuts[::2], cuts[1::2], strict=False) if text[slice(*pair)].strip() == text[slice(*pair)]
    ]
    drops = Counter[str]()
    found = cut_paragraphs(text, [(start, end, text[start:end]) for start, end in spans], drops)
    assert [each for each, _ in found] == [line.strip() for line in text.split("\n") if line.strip()]
    kept = [(line[start:end], name) for line, links in found for start, end, name in links]
    assert kept == [(name, name) for start, end in spans if "\n" not in (name := text[start:end])]
    assert drops.total() == len(spans) - len(kept)


def test_two_processes_go_on_where_one_stopped(wiki: Any, tmp_path: Path) -> None:
    """One has done a block and half of the next; files come out as from one that is never stopped."""
    mentions, _, documents = wiki
    folder = write_lines(tmp_path / "texts", documents)
    stage = stage_of(tmp_path, folder, mentions, 4096)
    whole = link(folder, mentions, tmp_path / "whole", size=4096)
    target, key = Path(stage.folder), storage.digest(stage.identity())
    storage.blocks.clear_if_changed(str(target), key)
    settings = {"documents": str(folder), "settings": asdict(replace(SETTINGS, mentions=str(mentions)))}
    [first, *others] = plan_blocks([str(folder / "a.jsonl")], 4096)
    assert len(others) > 1
    [done] = Here(DocumentLinker, target)("", [first], settings).values()
    storage.blocks.commit_block(str(target), key, 0, done)
    (target / "paragraphs/block-00001.parquet").write_bytes(b"half")
    written = {each.path: (target / each.path).stat().st_mtime_ns for each in done.files}
    assert not stage.is_done()

    run_in_process(stage)
    assert stage.is_done()
    manifest = stage.manifest()
    assert (manifest.files, manifest.rows, manifest.drops) == (whole.files, whole.rows, whole.drops)
    assert {path: (target / path).stat().st_mtime_ns for path in written} == written

    assert stage_of(tmp_path, folder, mentions, 4096, min_probability=0.5).folder != stage.folder
    (folder / "a.jsonl").write_bytes((folder / "a.jsonl").read_bytes().replace(b"the", b"The"))
    assert not stage.is_current()
    assert stage.bytes_parameters()["documents"] != manifest.parameters["documents"]


def test_beside_a_dump_or_instead(wiki: Any, tmp_path: Path) -> None:
    def sequences(**values: Any) -> BuildSequences:
        return BuildSequences(settings=run_of(tmp_path, sequences=values))

    linked, plain = stage_of(tmp_path, write_lines(tmp_path / "texts", wiki[2]), wiki[0]), sequences()
    for stage, pages in ((linked, 3), (plain.clone(ExtractPages), 4)):
        path = Path(stage.folder, "paragraphs/block-00000.parquet")
        path.parent.mkdir(parents=True)
        path.touch()
        entry = storage.describe(stage.folder, "paragraphs/block-00000.parquet")
        write_manifest(stage.folder, type(stage).__name__, [entry], rows={"pages": pages})
    own, dump = (f"{each.folder}/paragraphs/block-00000.parquet" for each in (linked, plain.clone(ExtractPages)))
    beside = sequences(annotated=linked.folder)
    instead = sequences(annotated=linked.folder, annotated_place="instead")
    assert plain.texts() == ([dump], 4, "corpus.dump demo")
    assert beside.texts() == ([dump, own], 7, "corpus.dump demo")
    assert instead.texts() == ([own], 3, f"sequences.annotated {linked.folder}")
    assert len({plain.folder, beside.folder, instead.folder}) == 3
    with pytest.raises(ValueError, match=r"sequences.annotated .*: made by ExtractPages; wanted the"):
        _ = sequences(annotated=plain.clone(ExtractPages).folder).hash8
