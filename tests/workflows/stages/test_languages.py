"""Several wikis in one run: one table of entities, each wiki's part as if alone, and one model."""

import bz2
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.data.shards import Corpus
from pipeline import storage
from pipeline.jobs.tables.merged_entities import connect
from pipeline.lookup.entities import EntityVocab
from pipeline.lookup.mentions import MentionTable
from pipeline.mediawiki.languages import LANGUAGE_CODES
from tasks.io.annotations import check_same_entities
from tasks.linking import __main__ as linking
from tasks.linking.options import parts_in_workdir
from tests.support.forked import end
from tests.support.manifests import write_manifest
from tests.support.oracle_languages import all_pages, groups_of, merged, named_pages
from tests.support.page_props import sql
from tests.support.stages import changed, folders, run_forked, run_in_process, run_of, start_forked
from workflows import (
    BuildContexts,
    BuildEntityVocab,
    BuildLinker,
    BuildMentionTable,
    BuildSequences,
    EvaluateLanguages,
    ExtractPages,
    MergeEntities,
    MergeSequences,
    Plan,
    Pretrain,
    Report,
    ResolveLinks,
    ResolveRedirects,
)
from workflows.base.stage import Stage

LANGUAGES = ["en", "de", "ja"]
# Title, page id, item, and wikitext.
WIKIS: dict[str, list[tuple[str, int, str, str]]] = {
    "en": [
        ("Ape", 1, "Q1", "An [[ape]] is near a [[monkey]] in [[Berlin]], says [[Anna Ape|she]].[[de:Affe]] [[ja:猿]]"),
        ("Monkey", 2, "Q2", "The [[monkey]] meets an [[ape]] by the [[river]], far from [[Berlin]] now.\n[[de:Affe]]"),
        ("Berlin", 3, "Q3", "[[Berlin]] is where one [[ape]] and one [[river]] are at home today.\n[[de:Berlin]]"),
        ("Anna Ape", 4, "", "#REDIRECT [[Ape]]"),
    ],
    "de": [
        ("Affe", 5, "Q1", "Der [[Affe]] lebt in [[Berlin]] am [[Fluss]] und sieht heute einen [[Meer]].\n[[en:Ape]]"),
        ("Berlin", 6, "Q3", "In [[Berlin]] lebt am [[Fluss]] auch ein [[Affe]] und sonst fast keiner.\n[[en:Berlin]]"),
        ("Affentier", 7, "Q1", "Ein [[Affentier]] ist kein [[Affe]], sagt man in [[Berlin]] und am [[Fluss]]."),
    ],
    "ja": [
        ("猿", 8, "Q1", "[[猿]]は[[ベルリン]]にいて、川のそばでよく遊ぶという。[[猿]]はとても賢い。[[en:Anna Ape]]"),
    ],
}  # fmt: skip
HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="{0}"><siteinfo>'
    "<sitename>Wikipedia</sitename><dbname>{0}wiki</dbname><base>https://{0}.wikipedia.org/wiki/X</base>"
    "<case>first-letter</case><namespaces><namespace key='0'/></namespaces></siteinfo>"
)


def write_wikis(folder: Path) -> dict[str, str]:
    """The values of `dump` and `page_props` for the three wikis, whose files are written."""
    dumps, props = [], []
    for language, pages in WIKIS.items():
        texts = [
            f"<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>1</id>"
            f"<model>wikitext</model><format>text/x-wiki</format><text>{text}</text></revision></page>"
            for title, number, _, text in pages
        ]
        dumps.append(folder / f"{language}wiki.xml")
        dumps[-1].write_text(f"{HEAD.format(language)}{''.join(texts)}</mediawiki>")
        props.append(folder / f"{language}.sql")
        items = [(number, "wikibase_item", qid.encode()) for _, number, qid, _ in pages if qid]
        props[-1].write_bytes(sql([items], f"{language}wiki"))
    return {"dump": ",".join(map(str, dumps)), "page_props": ",".join(map(str, props))}


def minis(shared: Path, folder: Path, english: str) -> str:
    """The value of `dump` for three real wikis; the heads of the small ones say what they are."""
    data, dumps = shared / "data" / "wikipedia", []
    for language in LANGUAGES[1:]:
        text = bz2.decompress((data / f"{language}wiki-mini.xml.bz2").read_bytes()).decode()
        for name in ('xml:lang="{}"', "<dbname>{}wiki<", "https://{}.wikipedia"):
            text = text.replace(name.format("en"), name.format(language), 1)
        dumps.append(folder / f"{language}wiki.xml")
        dumps[-1].write_text(text)
    return ",".join(map(str, (data / f"{english}.xml.bz2", *dumps)))


def rows_of(stage: MergeEntities) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(Path(stage.folder) / "entities.parquet").to_pylist()
    return rows


def folders_of(stage: MergeEntities) -> dict[str, str]:
    return {language: stage.clone(ExtractPages, wiki=wiki).folder for wiki, language in enumerate(LANGUAGES)}


def wanted_of(stage: MergeEntities, qids: dict[tuple[str, str], str]) -> list[dict[str, Any]]:
    """The tables that the oracle makes of the same pages."""
    wikis = folders_of(stage)
    pages = all_pages(wikis)
    groups = groups_of(named_pages(wikis), pages, LANGUAGES) if stage.corpus.interlanguage_links else []
    return merged(pages, LANGUAGES, qids=qids, groups=groups, size=stage.corpus.vocab_size)


PAGES = st.tuples(st.integers(0, 3), st.sampled_from("abc"))


@given(st.dictionaries(PAGES, st.integers(1, 3), min_size=2), st.data())
def test_pages_are_connected_as_the_oracle_does(counts: dict[tuple[int, str], int], data: st.DataObject) -> None:
    pages = st.sampled_from(sorted(counts))
    pairs = st.tuples(pages, pages).filter(lambda pair: pair[0][0] != pair[1][0])
    links = data.draw(st.lists(pairs, unique=True)) if len({wiki for wiki, _ in counts}) > 1 else []
    keys, contradictions = connect([(counts[one] + counts[two], one, two) for one, two in links])
    rows = {(str(wiki), title): {"link_count": count} for (wiki, title), count in counts.items()}
    named = [((str(one[0]), one[1]), (str(two[0]), two[1])) for one, two in links]
    wanted = groups_of(named, rows, ["0", "1", "2", "3"])
    found: dict[tuple[int, str], set[tuple[str, str]]] = {}
    for (wiki, title), key in keys.items():
        found.setdefault(key, set()).add((str(wiki), title))
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, wanted))
    assert contradictions <= len({frozenset(link) for link in links})


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> MergeEntities:
    """The three hand-written wikis, merged by their items, with all that comes behind, up to a model."""
    folder = tmp_path_factory.mktemp("languages")
    corpus = {**write_wikis(folder), "missing_pages": "in", "held_out": 0.5}
    stage = MergeEntities(settings=run_of(folder / "work", corpus=corpus, machine={"processes": 1}))
    run_in_process(stage.clone(EvaluateLanguages))
    return stage


@pytest.mark.slow
def test_pages_of_one_item_are_one_entity(small: MergeEntities) -> None:
    qids = {(language, title): qid for language, pages in WIKIS.items() for title, _, qid, _ in pages if qid}
    assert rows_of(small) == wanted_of(small, qids)
    assert small.manifest().drops["pages:same_item"] == 1
    ape = next(row for row in rows_of(small) if row["qid"] == "Q1")
    assert [(page["language"], page["title"]) for page in ape["pages"]] == [("en", "Ape"), ("de", "Affe"), ("ja", "猿")]
    for wiki, language in enumerate(LANGUAGES):
        vocab = EntityVocab.load(small.clone(BuildEntityVocab, wiki=wiki).folder)
        title = {"en": "Ape", "de": "Affe", "ja": "猿"}[language]
        assert vocab.titles[ape["entity_id"]] == title
        table = MentionTable(small.clone(BuildMentionTable, wiki=wiki).folder)
        target = table.targets.get(title)
        assert target is not None
        assert (target.entity_id, target.qid) == (ape["entity_id"], "Q1")
    german = EntityVocab.load(small.clone(BuildEntityVocab, wiki=1).folder)
    assert "en|Monkey" in german.titles


@pytest.mark.slow
def test_interlanguage_links_stand_in_for_items(tmp_path: Path) -> None:
    corpus = {"dump": write_wikis(tmp_path)["dump"], "missing_pages": "in", "interlanguage_links": True}
    stage = MergeEntities(settings=run_of(tmp_path / "work", corpus=corpus, machine={"processes": 1}))
    run_in_process(stage)
    assert rows_of(stage) == wanted_of(stage, {})
    titles = [[page["title"] for page in row["pages"]] for row in rows_of(stage)]
    assert ["Ape", "Affe", "猿"] in titles  # the last by a redirect
    assert ["Monkey"] in titles  # which names the page that names Ape
    assert stage.manifest().drops["language_links:contradict"] == 1


@pytest.mark.slow
def test_each_wikis_part_is_the_chain_of_its_own(small: MergeEntities, tmp_path: Path) -> None:
    dumps, props = (getattr(small.settings.corpus, name).split(",") for name in ("dump", "page_props"))
    alone = run_of(tmp_path, corpus={"dump": dumps[1], "page_props": props[1]}, machine={"processes": 2})
    for kind in (ExtractPages, ResolveRedirects, ResolveLinks):
        single, part = kind(settings=alone), small.clone(kind, wiki=1)
        run_in_process(single)
        assert Path(single.folder).name == Path(part.folder).name
        assert storage.manifest_sha256(single.folder) == storage.manifest_sha256(part.folder)


@pytest.mark.slow
def test_one_model_sees_the_sequences_of_all(small: MergeEntities) -> None:
    stage = small.clone(MergeSequences)
    for part in ("sequences", "held_out"):
        corpus = Corpus(Path(stage.folder), part)
        own = [small.clone(BuildSequences, wiki=wiki).manifest().rows[part] for wiki in range(3)]
        assert len(corpus) == sum(own) > 0
        found = {language: len(rows) for language, rows in corpus.languages.items()}
        assert found == dict(sorted(zip(LANGUAGES, own, strict=True)))
    figures = json.loads((Path(small.clone(EvaluateLanguages).folder) / "languages.json").read_text())
    assert list(figures) == LANGUAGES
    for wiki, language in enumerate(LANGUAGES):
        count = small.clone(BuildSequences, wiki=wiki).manifest().rows["held_out"]
        assert figures[language].get("sequences", 0) == count


@pytest.mark.slow
def test_each_language_has_a_linker_around_the_model(
    small: MergeEntities, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The export has the titles of all languages, and a linker of one uses those of its own."""
    stage = small.clone(BuildLinker, wiki=1)
    run_in_process(stage)
    folder = Path(stage.folder)
    assert json.loads((folder / "linker.json").read_text())["language"] == "de"
    rows = json.loads((folder / "model" / "entity_vocab.json").read_text())
    assert rows["en:Ape"] == rows["de:Affe"] == rows["ja:猿"] != rows["en:Monkey"]
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"id": "1", "text": "Der Affe ist hier.", "mentions": [{"start": 4, "end": 8}]})
    )
    of_workdir = ["--workdir", stage.workdir, "--language", "de"]
    for words in (["--linker", str(folder)], of_workdir):
        linking.main(["link", *words, "--device", "cpu", str(tmp_path / "a.jsonl")])
        [mention] = json.loads(capsys.readouterr().out)["mentions"]
        assert (mention["title"], mention["qid"]) == ("Affe", "Q1")
    run_in_process(small.clone(BuildContexts))
    assert parts_in_workdir(stage.workdir)["mentions"] == Path(small.clone(BuildMentionTable).folder)
    assert [parts_in_workdir(stage.workdir, code).keys() for code in LANGUAGES] == [
        {"mentions", "contexts", "model"},
        {"mentions", "contexts", "model"},
        {"mentions", "model"},
    ]
    texts = [{"text": "Der Affe ist heute in Berlin, sagt man."}, {"text": "The ape is here.", "language": "en"}]
    texts += [{"text": "The monkey is in Berlin now, they say."}, {"text": "Affe", "language": "it"}]
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps({'id': '1', **each})}\n" for each in texts))
    with pytest.raises(SystemExit, match="1"):  # for the last one
        linking.main(["link", "--workdir", stage.workdir, "--language", "auto", str(tmp_path / "b.jsonl")])
    answers = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [each.get("language") for each in answers] == ["de", "en", "en", None]
    assert [each["mentions"][0]["title"] for each in answers[:3]] == ["Affe", "Ape", "Monkey"]
    assert "language is 'it'; wanted one of en, de, ja" in answers[3]["error"]
    with pytest.raises(SystemExit, match=r"--language it: the wikis of .* are of en, de, ja"):
        linking.main(["link", *of_workdir[:-1], "it", str(tmp_path / "a.jsonl")])


@pytest.mark.slow
def test_a_mention_table_of_another_run_is_refused(small: MergeEntities, tmp_path: Path) -> None:
    """Each language's table fits the model, and one with as many entities of other numbers does not."""
    model = Path(small.clone(Pretrain).folder)
    for wiki in range(3):
        check_same_entities(Path(small.clone(BuildMentionTable, wiki=wiki).folder), model)
    other = tmp_path / "mentions"
    shutil.copytree(small.clone(BuildMentionTable, wiki=1).folder, other)
    manifest = storage.read_manifest(str(other))
    inputs = {**manifest.inputs, "MergeEntities": "0" * 64}
    storage.write_manifest(str(other), replace(manifest, inputs=inputs))
    with pytest.raises(ValueError, match="mentions: not the mention table beside which"):
        check_same_entities(other, model)


@pytest.mark.slow
def test_the_report_has_a_row_for_each_language(small: MergeEntities, quick_training: None) -> None:
    stage = Report(settings=changed(small.settings, fine_tuning={"tasks": ["entity_typing"]}), whole=True)
    run_in_process(stage)
    rows = json.loads((Path(stage.folder) / "results.json").read_text())["wikis"]
    assert [row["language"] for row in rows] == LANGUAGES
    assert [row["pages"] for row in rows] == [3, 3, 1]
    assert [row["files"] for row in rows] == [[f"{language}wiki.xml"] for language in LANGUAGES]
    lines = (Path(stage.folder) / "tables.md").read_text().split("## Languages")[1].split("##")[0].splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| ")] == ["language", *LANGUAGES]
    page = (Path(stage.folder) / "index.html").read_text()
    assert '<h3 id="languages">' in page
    assert "jawiki.xml" in page


def run_killed(words: list[Any], folder: Path, *, times: int, seed: int) -> None:
    """Run a stage, which is killed so many times first."""
    random = np.random.default_rng(seed)
    for _ in range(times):
        process = start_forked(*words, cwd=folder, said=folder / "said")
        process.join(float(random.uniform(1, 8)))
        process.kill()
        end(process)
    result = run_forked(*words, cwd=folder)
    assert result.returncode == 0, result.stderr


def same_bytes(work: Path, other: Path) -> None:
    """See that each stage of a work directory has the manifest that it has in another one."""
    for name, folder in folders(work).items():
        assert (folder / "manifest.json").read_bytes() == (other / folder.name / "manifest.json").read_bytes(), name


@pytest.mark.slow
def test_a_run_in_pieces_has_the_same_bytes(small: MergeEntities, tmp_path: Path) -> None:
    """Killed again and again, with two processes."""
    settings, wanted = small.settings.corpus, small.clone(MergeSequences)
    words = ["MergeSequences", "--workdir", tmp_path / "work", "--dump", settings.dump, "--set"]
    words += [f"corpus.page_props={settings.page_props}", "--set", "corpus.missing_pages=in", "--set"]
    words += ["corpus.held_out=0.5", "--set", "machine.processes=2"]
    run_killed(words, tmp_path, times=4, seed=7)
    same_bytes(tmp_path / "work", Path(wanted.workdir))


@pytest.mark.slow
def test_real_wikis(shared: Path, tmp_path: Path) -> None:
    dump = minis(shared, tmp_path, "enwiki-2006-500")
    corpus = {"dump": dump, "missing_pages": "in", "interlanguage_links": True, "vocab_size": 30_000}
    stage = MergeEntities(settings=run_of(tmp_path / "work", corpus=corpus, machine={"processes": 2}))
    run_in_process(stage)
    assert rows_of(stage) == wanted_of(stage, {})
    assert stage.manifest().facts["entities_by_number_of_languages"]["3"] > 0


@pytest.mark.slow
def test_real_wikis_by_items(shared: Path, tmp_path: Path) -> None:
    """Items are shared by pages of one wiki and of several; killed with two processes, the bytes are those of one."""
    corpus = {"dump": minis(shared, tmp_path, "enwiki-2016-206"), "missing_pages": "in", "page_props": "none"}
    stage = MergeEntities(settings=run_of(tmp_path / "work", corpus=corpus, machine={"processes": 1}))
    run_in_process(stage)
    files, qids = list[str](), dict[tuple[str, str], str]()
    for language, folder in folders_of(stage).items():
        pages = pq.read_table(Path(folder) / "pages").to_pylist()
        own = {(language, page["title"]): f"Q{1 + number % 80}" for number, page in enumerate(pages)}
        items = [(page["page_id"], "wikibase_item", own[language, page["title"]].encode()) for page in pages]
        files.append(str(tmp_path / f"{language}.sql"))
        Path(files[-1]).write_bytes(sql([items], f"{language}wiki"))
        qids |= own
    stage = MergeEntities(settings=changed(stage.settings, corpus={"page_props": ",".join(files)}))
    run_in_process(stage)
    assert rows_of(stage) == wanted_of(stage, qids)
    assert {len(row["pages"]) for row in rows_of(stage)} == {1, 2, 3}
    words = ["MergeEntities", "--workdir", tmp_path / "killed", "--dump", corpus["dump"], "--set"]
    words += [f"corpus.page_props={','.join(files)}", "--set", "corpus.missing_pages=in", "--set"]
    words += ["machine.processes=2"]
    run_killed(words, tmp_path, times=3, seed=8)
    same_bytes(tmp_path / "killed", Path(stage.workdir))


def test_many_wikis_are_planned_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stage is asked once for those that it requires, however many ways lead to it."""
    asked = list[int]()
    requires = ExtractPages.requires

    def count(stage: ExtractPages) -> dict[str, Stage]:
        asked.append(stage.wiki)
        return requires(stage)

    monkeypatch.setattr(ExtractPages, "requires", count)
    dump = ",".join(f"{code}wiki" for code in sorted(LANGUAGE_CODES)[:24])
    MergeEntities(settings=run_of(tmp_path, corpus={"dump": dump})).upstream()
    assert sorted(asked) == list(range(24))


def test_a_report_shows_the_stages_of_the_first_wiki(tmp_path: Path) -> None:
    corpus = {"dump": write_wikis(tmp_path)["dump"], "missing_pages": "in"}
    found = Report(settings=run_of(tmp_path / "work", corpus=corpus), whole=True).by_name()
    assert {"MergeEntities", "MergeSequences", "Pretrain"} < found.keys()
    for name in ("FetchDump", "ExtractPages", "BuildEntityVocab", "BuildMentionTable", "BuildSequences"):
        assert found[name].wiki == 0
    with pytest.raises(ValueError, match=r"corpus.dump: Plan estimates one dump"):
        Plan(settings=run_of(tmp_path / "work", corpus=corpus)).run()


def test_what_cannot_be_merged_is_told(tmp_path: Path) -> None:
    def of(**corpus: object) -> MergeEntities:
        return MergeEntities(settings=run_of(tmp_path, corpus={"dump": "enwiki,dewiki", **corpus}))

    with pytest.raises(ValueError, match=r"corpus.page_props a.sql,b.sql,c.sql: names 3 files for 2 dumps"):
        of(page_props="a.sql,b.sql,c.sql").requires()
    with pytest.raises(ValueError, match=r"--wiki 2: corpus.dump names 2"):
        _ = of().clone(ExtractPages, wiki=2).corpus
    with pytest.raises(ValueError, match=r"several wikis get a vocabulary of their own"):
        of(entity_vocab=str(tmp_path)).check_needs()
    write_manifest(tmp_path, "LinkDocuments")
    run = run_of(tmp_path, corpus={"dump": "enwiki,dewiki"}, sequences={"annotated": str(tmp_path)})
    with pytest.raises(ValueError, match=r"sequences.annotated: its texts are of one language"):
        BuildSequences(settings=run).bytes_parameters()
    with pytest.raises(ValueError, match=r"stands in for corpus.page_props"):
        of(interlanguage_links=True, page_props="a.sql,b.sql").check_needs()
    dump = write_wikis(tmp_path)["dump"]
    with pytest.raises(ValueError, match=r"enwiki.xml: a file does not say which pages are one entity"):
        of(dump=dump).check_needs()
    with pytest.raises(ValueError, match=r"its wikis have the languages en, de, ja, en; wanted each once"):
        of(dump=f"{dump},demo", page_props="none").check_needs()


def test_each_wiki_has_rules_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "de.toml").write_text('[namespaces]\nfile = ["Scan"]\n')
    corpus = {"dump": "enwiki,dewiki", "wiki_rules": f"none,{tmp_path}/de.toml"}
    stage = MergeEntities(settings=run_of(tmp_path, corpus=corpus))
    wikis = [ExtractPages(settings=stage.settings, wiki=wiki) for wiki in range(2)]
    rules = [each.bytes_parameters().get("wiki_rules") for each in wikis]
    assert rules == [None, (tmp_path / "de.toml").read_text()]
