"""Stages as a user runs them: what is done stays done, what is missing is made, and a kill costs only time."""

import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from model.hf.load import fingerprint_model
from pipeline import storage
from pipeline.lookup.held_out import HELD_OUT
from tasks.linking import __main__ as linking
from tests.support import DATA, ROOT
from tests.support.forked import end
from tests.support.killed import ended, family
from tests.support.stages import (
    DUMP,
    IN_BLOCKS,
    SEVERAL_BLOCKS,
    changed,
    folders,
    manifests,
    run_forked,
    run_in_process,
    run_luigi,
    run_of,
    start_forked,
    started,
    wait_for,
    write_run,
)
from workflows import (
    BuildContexts,
    BuildDocuments,
    BuildEntityVocab,
    BuildLinker,
    BuildMentionTable,
    BuildSequences,
    EvaluateLinking,
    ExportHuggingFace,
    ExtractPages,
    FetchDump,
    LinkDocuments,
    Pretrain,
    PretrainRoberta,
    Report,
    RunAll,
)
from workflows.base.stage import Stage
from workflows.run.file import Run
from workflows.run.tables import TASKS

pytestmark = pytest.mark.slow


def written(workdir: Path) -> dict[str, int]:
    """When each stage was committed."""
    return {name: (folder / "manifest.json").stat().st_mtime_ns for name, folder in folders(workdir).items()}


def run_on(dump: Path, workdir: object, **tables: Any) -> Run:
    """A run on a dump, by one process."""
    corpus = {"dump": str(dump), **tables.pop("corpus", {})}
    return run_of(workdir, **tables, corpus=corpus, machine={"processes": 1, **tables.pop("machine", {})})


def other(stage: RunAll, **tables: Any) -> RunAll:
    """The same with other values in the run."""
    return stage.clone(settings=changed(stage.settings, **tables))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, quick_training: None) -> RunAll:
    """All stages, run on the hand-written dump."""
    workdir = tmp_path_factory.mktemp("everything")
    stage = RunAll(settings=run_on(DUMP, workdir))
    run_in_process(stage)
    return stage


ALL_FOLDERS = {
    "dump", "pages", "titles", "links", "entity_vocab", "mentions", "contexts", "tokenizer", "sequences",
    "pretrain", "pretrain_roberta", "documents", "linking", "linker", "export", "finetune", "experiments", "report",
}  # fmt: skip


@pytest.mark.smoke
def test_every_stage_leaves_a_manifest(everything: RunAll) -> None:
    assert set(folders(Path(everything.workdir))) == ALL_FOLDERS
    assert everything.complete()


@pytest.mark.smoke
def test_manifests_hold_nothing_of_this_machine(everything: RunAll) -> None:
    for folder in folders(Path(everything.workdir)).values():
        text = (folder / "manifest.json").read_text()
        assert str(everything.workdir) not in text
        assert str(DATA) not in text
        assert f'"{os.uname().nodename}"' not in text
        assert "seconds" not in text
        assert (folder / "run.json").is_file()


@pytest.mark.smoke
def test_the_report_shows_what_happened_and_escapes_titles(everything: RunAll) -> None:
    report = everything.clone(Report)
    page = (Path(report.folder) / "index.html").read_text()
    assert "wiki-40.xml.bz2" in page
    assert "<script>alert" not in page
    for name in (
        "ExtractPages",
        "BuildMentionTable",
        "FineTuneGrid",
        "FineTune (ner, luke, seed 42)",
        "FineTune (relation_classification, roberta_extra_training, seed 42)",
        "links: category",
        "A tiny model shows",
    ):
        assert name in page
    results = json.loads((Path(report.folder) / "results.json").read_text())
    cells = [(cell["task"], cell["variant"], cell["state"]) for cell in results["cells"]]
    variants = ("luke", "roberta_extra_training")
    assert cells == [(task, variant, "done") for task in TASKS for variant in variants]
    assert len(results["training"]["Pretrain"]["log"]) == 4
    own = [cell["weights"] for cell in results["cells"] if cell["variant"] == "luke"]
    assert all(weights["is_own"] and weights["preset"] == "tiny" for weights in own)


@pytest.mark.smoke
def test_the_linker_can_be_carried(everything: RunAll, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of its folder answers as the parts of the work directory do, in either way, and links documents."""
    stage = everything.clone(BuildLinker)
    for path in Path(stage.folder).rglob("*.arrow"):
        assert path.stat().st_nlink > 1  # no bytes of the disk
    copy = shutil.copytree(stage.folder, tmp_path / "linker")
    texts = tmp_path / "texts"
    texts.mkdir()
    page = next(storage.read_rows(next(Path(everything.clone(ExtractPages).folder).glob("paragraphs/*"))))
    (texts / "a.jsonl").write_text(json.dumps({"id": "a", "text": page["text"]}))
    for way in ([], ["--global"]):
        answers = []
        for where in (["--linker", str(copy)], ["--workdir", everything.workdir]):
            linking.main(["link", *where, *way, "--device", "cpu", str(texts / "a.jsonl")])
            answers.append(capsys.readouterr().out)
        assert answers[0] == answers[1] > ""
    settings = changed(everything.settings, linking={"documents": str(texts), "linker": str(copy)})
    documents = LinkDocuments(settings=replace(settings, workdir=str(tmp_path / "work")))
    assert not documents.requires()
    run_in_process(documents)
    assert documents.manifest().rows["links"] > 0
    with pytest.raises(ValueError, match="linker has a mention table; give one of both"):
        documents.clone(settings=changed(settings, linking={"mentions": str(copy / "mentions")})).check()


@pytest.mark.smoke
def test_the_export_loads_in_transformers(everything: RunAll) -> None:
    from transformers import LukeForMaskedLM, LukeTokenizer

    folder = Path(everything.clone(ExportHuggingFace).folder) / "model"
    _, info = LukeForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    tokenizer = LukeTokenizer.from_pretrained(folder)
    vocab = json.loads((Path(everything.clone(BuildEntityVocab).folder) / "entity_vocab.json").read_text())
    title = next(title for title, number in vocab.items() if number == 3)
    assert tokenizer("x", entities=[title], entity_spans=[(0, 1)])["entity_ids"] == [3]


@pytest.mark.smoke
def test_a_second_run_does_nothing(everything: RunAll) -> None:
    before = written(Path(everything.workdir))
    run_in_process(everything)
    assert written(Path(everything.workdir)) == before


def copied(everything: RunAll, target: Path, **tables: Any) -> RunAll:
    shutil.copytree(everything.workdir, target, dirs_exist_ok=True)
    return RunAll(settings=replace(other(everything, **tables).settings, workdir=str(target)))


@pytest.mark.smoke
@pytest.mark.parametrize(("kind", "name"), [(ExtractPages, "pages"), (BuildSequences, "sequences")])
def test_a_stage_that_is_gone_or_damaged_is_made_again_and_alone_when_its_bytes_are_the_same(
    everything: RunAll, tmp_path: Path, kind: type[Stage], name: str
) -> None:
    stage = copied(everything, tmp_path)
    folder = Path(stage.clone(kind).folder)
    before, manifest = written(tmp_path), (folder / "manifest.json").read_bytes()
    if kind is ExtractPages:
        shutil.rmtree(folder)
    else:
        shard = next((folder / "sequences").iterdir())
        shard.write_bytes(shard.read_bytes()[:-10])
    assert not stage.complete()
    run_in_process(stage)
    after = written(tmp_path)
    assert {each for each in after if after[each] != before[each]} == {name}
    assert (folder / "manifest.json").read_bytes() == manifest


def test_a_deleted_page_is_made_again_and_the_manifest_stays(everything: RunAll, tmp_path: Path) -> None:
    stage = copied(everything, tmp_path)
    folder = Path(stage.report().folder)
    manifest = (folder / "manifest.json").read_bytes()
    (folder / "index.html").unlink()
    assert not stage.complete()
    run_in_process(stage)
    assert (folder / "index.html").is_file()
    assert (folder / "manifest.json").read_bytes() == manifest


def test_a_changed_parameter_runs_only_what_it_changes(everything: RunAll, tmp_path: Path) -> None:
    stage = copied(everything, tmp_path, corpus={"vocab_size": 6})
    before = {path.parent.name for path in tmp_path.glob("*/manifest.json")}
    run_in_process(stage)
    new = {path.parent.name for path in tmp_path.glob("*/manifest.json")} - before
    unchanged = {"dump", "pages", "titles", "links", "contexts", "tokenizer"}
    assert {name.rsplit("-", 1)[0] for name in new} == ALL_FOLDERS - unchanged


def test_a_lite_export_stands_beside_the_whole_one(everything: RunAll) -> None:
    whole, lite = (everything.clone(ExportHuggingFace, lite=lite) for lite in (False, True))
    assert whole.complete()
    assert not lite.complete()
    assert whole.folder != lite.folder
    assert [stage.folder for stage in lite.upstream()] == [stage.folder for stage in whole.upstream()]


def test_a_changed_dump_is_noticed(tmp_path: Path) -> None:
    """Same name, same size, other content: only the time of change tells."""
    dump = tmp_path / "dump.xml"
    content = (DATA / "wiki-40.xml").read_bytes()
    dump.write_bytes(content)
    stage = ExtractPages(settings=run_on(dump, tmp_path / "work"))
    run_in_process(stage)
    first = stage.manifest()
    for time_of_change, text, expected_change in ((1, content, False), (2, content.replace(b"the", b"The"), True)):
        dump.write_bytes(text)
        os.utime(dump, (time_of_change, time_of_change))
        before = written(tmp_path / "work")["pages"]
        assert not stage.clone(FetchDump).is_current()
        run_in_process(stage)
        assert (written(tmp_path / "work")["pages"] != before) is expected_change
    assert stage.manifest().files != first.files


def test_the_papers_profile_with_a_given_tokenizer_in_an_odd_folder(shared: Path, tmp_path: Path) -> None:
    """Profile `paper` drops what is not in the vocabulary; brackets, braces and blanks in a path are no pattern."""
    tokenizer = str(shared / "data/roberta-tokenizer")
    workdir = str(tmp_path / "w [1]{a,b}*")
    facts = {}
    for profile in ("fixed", "paper"):
        given = {"corpus": {"profile": profile}, "sequences": {"tokenizer": tokenizer}}
        # Spark ends the name of a folder at a comma.
        run = changed(run_on(DUMP, workdir, **given), machine={"scratch": str(tmp_path / "scratch")})
        stage = BuildSequences(settings=run)
        run_in_process(stage)
        facts[profile] = stage.manifest()
    assert facts["fixed"].facts["word_vocab_size"] == 50265
    assert facts["fixed"].facts["unknown_entities"] > 0
    assert facts["paper"].facts["unknown_entities"] == 0
    assert facts["paper"].drops["links:out_of_vocabulary"] > 0
    assert "tokenizer" not in folders(Path(workdir))


@pytest.mark.parametrize(
    ("table", "reader", "values"),
    [("pages", BuildEntityVocab, {"vocab_size": 6}), ("paragraphs", BuildContexts, {"held_out": 0.3})],
)
def test_a_changed_bit_in_a_part_is_noticed(
    everything: RunAll, tmp_path: Path, table: str, reader: type[Stage], values: dict[str, object]
) -> None:
    """Its size is the same, and its footer is whole: only the checksum of its pages tells."""
    stage = copied(everything, tmp_path)
    part = Path(stage.clone(ExtractPages).folder) / table / "block-00000.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 1
    part.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{part}: not readable as Parquet.*run its stage again"):
        other(stage, corpus=values).clone(reader).run()


@pytest.mark.parametrize(
    ("reader", "values", "message"),
    [
        (BuildEntityVocab, {"entity_vocab": "other.tsv"}, "none of its 4 entities is a page of .*; is it another"),
        (BuildSequences, {"held_out": 1.0}, r"corpus.held_out 1.0: all \d+ sequences are held out"),
    ],
)  # fmt: skip
def test_what_leaves_nothing_is_refused(
    everything: RunAll,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: type[Stage],
    values: dict[str, object],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    stage = copied(everything, tmp_path)
    (tmp_path / "other.tsv").write_text("[PAD]\t0\n[UNK]\t0\n[MASK]\t0\nElsewhere\t3\n")
    with pytest.raises(ValueError, match=message):
        other(stage, corpus=values).clone(reader).run()


def failing(text: str, language: str) -> list[tuple[int, int]]:
    """A splitter that breaks on a page."""
    if "lighthouse" in text:
        raise KeyError(text)
    return [(0, len(text))]


def always_failing(text: str, language: str) -> list[tuple[int, int]]:
    raise KeyError(text)


def test_a_page_that_breaks_the_splitter_is_kept_with_its_error(
    everything: RunAll, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT)]))
    given = {"sentence_splitter": f"{__name__}:failing"}
    stage = copied(everything, tmp_path, sequences=given).clone(BuildSequences)
    run_in_process(stage)
    assert stage.manifest().rows["sequences"] > 0
    lost = [
        row
        for path in stage.manifest().paths(stage.folder, "rejected/")
        for row in storage.read_rows(path, ["page_id", "reason", "message", "traceback"])
    ]
    assert len(lost) == stage.manifest().drops["pages:KeyError"] >= 1
    assert all(row["reason"] == "KeyError" and "lighthouse" in row["message"] for row in lost)
    assert re.search(rf"{__name__}:\d+ failing$", lost[0]["traceback"])
    assert f"page {lost[0]['page_id']}: KeyError: " in caplog.text
    assert lost[0]["traceback"] in caplog.text
    given = {"sentence_splitter": f"{__name__}:always_failing"}
    stage = stage.clone(settings=changed(stage.settings, sequences=given))
    with pytest.raises(ValueError, match=r"pages .* were dropped .*KeyError.* corpus.max_rejected 0.001 allows"):
        stage.run()


@pytest.fixture(scope="module")
def with_held_out(everything: RunAll, tmp_path_factory: pytest.TempPathFactory) -> RunAll:
    """The same with pages that are held out."""
    stage = copied(everything, tmp_path_factory.mktemp("held-out"), corpus={"held_out": 0.3})
    run_in_process(stage)
    return stage


def test_held_out_figures_stand_beside_the_mention_table_s_answers(with_held_out: RunAll) -> None:
    """The file of commonest labels against the mention table's rows, and what evaluation makes of it."""
    from pipeline.sequences.commonest import COMMONEST
    from pipeline.sequences.tokenizer import WordTokenizer

    stage = with_held_out
    built, mentions = stage.clone(BuildSequences), stage.clone(BuildMentionTable)
    pretrained = stage.clone(Pretrain)
    paths = mentions.manifest().paths(mentions.folder, "mentions/")
    links = [row for path in paths for row in storage.read_rows(path)]
    decode = WordTokenizer.load(built.tokenizer_folder()).decode
    rows = [
        row
        for path in sorted(built.manifest().paths(built.folder, f"{HELD_OUT}/"))
        for row in storage.open_arrow(path).to_pylist()
    ]
    statistics = built.read_json("statistics.json")
    assert (statistics[HELD_OUT]["sequences"], statistics["drops"]) == (len(rows), built.manifest().drops)
    texts = [
        [
            decode(row["word_ids"][start:end]).strip()
            for start, end in zip(row["entity_starts"], row["entity_ends"], strict=True)
        ]
        for row in rows
    ]
    own = Counter(
        (text, label)
        for row, names in zip(rows, texts, strict=True)
        for text, label in zip(names, row["entity_ids"], strict=True)
    )
    answers = storage.open_arrow(Path(pretrained.folder) / COMMONEST)["commonest"].to_pylist()
    assert [len(row) for row in answers] == [len(row["entity_ids"]) for row in rows]
    for names, found in zip(texts, answers, strict=True):
        for text, label in zip(names, found, strict=True):
            counts: Counter[int] = Counter()
            for link in links:
                if link["mention"] == text:
                    counts[1 if link["entity_id"] is None else link["entity_id"]] += link["link_count"]
            assert counts, f"{text!r} is a link, so the table has it"
            left = {each: count - own[text, each] for each, count in counts.items()}
            assert all(count >= 0 for count in left.values())
            assert left[label] == max(left.values()) if label >= 0 else not any(left.values())
    assert len({label for row in answers for label in row} - {-1}) > 3
    figures = json.loads((Path(pretrained.folder) / "evaluation.jsonl").read_text().splitlines()[-1])
    assert figures["masked_entity_count"] >= figures["sequences"] > 0
    assert 0 <= figures["masked_entity_commonest_top_1"] <= 1
    names = {entry.path for entry in pretrained.manifest().files}
    assert {COMMONEST, "evaluation.jsonl", "metrics.csv"} < names
    assert not any(name.startswith("log") for name in names)
    words = {entry.path for entry in stage.clone(PretrainRoberta).manifest().files}
    assert names - words == {COMMONEST, "answers.jsonl"}
    scores = json.loads((Path(stage.clone(EvaluateLinking).folder) / "scores.json").read_text())
    [of_pages] = scores["sets"]
    held_out = stage.clone(BuildDocuments).manifest().rows["held_out"]
    assert of_pages["documents"] + scores["calibrated_by"] == held_out > scores["calibrated_by"] > 0
    assert {*of_pages["methods"]} == {"prior", "contexts", "local", "global"}
    assert all(0 < each["disambiguation"]["overall"]["accuracy"] < 1 for each in of_pages["methods"].values())
    calibration = json.loads((Path(stage.clone(EvaluateLinking).folder) / "calibration/global.json").read_text())
    linker = Path(stage.clone(BuildLinker).folder)
    told = json.loads((linker / "linker.json").read_text())
    assert told["bytes"]["calibration"] == sum(path.stat().st_size for path in linker.glob("calibration/*"))
    overall = of_pages["methods"]["local"]["disambiguation"]["overall"]
    assert told["sets"][0]["methods"]["local"].items() > {"accuracy": overall["accuracy"]}.items()
    exported = fingerprint_model(str(Path(stage.clone(ExportHuggingFace).folder) / "model"))
    assert (calibration["made_for"]["model"], calibration["made_for"]["mode"]) == (exported, "global")
    told = [
        json.loads((Path(stage.clone(of).folder) / name / "pretraining.json").read_text())
        for of, name in ((Pretrain, ""), (ExportHuggingFace, "model"))
    ]
    assert told[0] == told[1]
    assert told[0]["max_words"] == stage.settings.sequences.max_words
    page = (Path(stage.clone(Report).folder) / "index.html").read_text()
    assert re.search(r"What LUKE says of \d+ held-out mentions", page)
    content = json.loads((Path(stage.clone(Report).folder) / "results.json").read_text())
    vocabulary = json.loads((Path(stage.clone(BuildEntityVocab).folder) / "entity_vocab.json").read_text())
    assert 1 <= len(content["answers"]) <= 20
    for row in content["answers"]:
        assert row["mention"].strip()
        assert {row["entity"], row["said"]} <= vocabulary.keys() - {"[PAD]", "[UNK]", "[MASK]"}
        assert row["right"] == (row["entity"] == row["said"])
    assert "Held-out pages" in page
    assert "known entity seen 1000 or more" in page


def test_sentences_dropped_for_their_length_can_stop_a_run(tmp_path: Path) -> None:
    dump = tmp_path / "dump.xml"
    dump.write_text((DATA / "wiki-40.xml").read_text().replace("</text>", "\n* Short.\n* Brief.</text>"))
    stage = BuildSequences(settings=run_on(dump, tmp_path, sequences={"max_dropped_sentences": 0}))
    for below in stage.requires().values():
        run_in_process(below)
    with pytest.raises(ValueError, match=r"sentences .* were dropped .*too_short.* sequences.max_dropped_sentences"):
        stage.run()
    assert not stage.output().exists()


# Kills, through the installed command


def test_the_corpus_has_all_stages_before_training_and_several_blocks(corpus: Path) -> None:
    """The stages that the tests below disturb."""
    assert len(manifests(corpus)) == 9
    assert len(list((folders(corpus)["pages"] / "blocks").iterdir())) > 4


# The folders of the stages that are killed, in their order, and what is run then.
KILLED = dict.fromkeys(("pages", "titles", "links", "mentions"), "BuildMentionTable")
KILLED |= {"contexts": "BuildContexts", "sequences": "BuildSequences"}


def has_blocks(workdir: Path, pattern: str, count: int) -> bool:
    return len(list(workdir.glob(pattern))) >= count


def test_a_kill_in_each_stage_costs_only_time(corpus: Path, tmp_path: Path) -> None:
    """Finished blocks are kept, others are made, and two processes write the bytes of an unbroken one."""
    workdir = tmp_path / "work"
    kept: dict[Path, int] = {}
    for name, stage in KILLED.items():
        pattern = f"{name}-*/blocks/block-*.json"
        half = len(list(corpus.glob(pattern))) // 2
        assert half >= 1
        command = [stage, *SEVERAL_BLOCKS, "--workdir", workdir, "--processes", 2]
        for _ in range(3):  # on a machine that is busy elsewhere the stage may end before the signal comes
            with started(*command, cwd=tmp_path) as process:
                wait_for(partial(has_blocks, workdir, pattern, half), process)
                helpers = family(process)[1:]
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                assert helpers
                assert ended(helpers, 20)
            if name not in folders(workdir):
                break
            shutil.rmtree(folders(workdir)[name])
        assert name not in folders(workdir)
        assert has_blocks(workdir, pattern, half)
        kept |= {path: path.stat().st_mtime_ns for path in workdir.glob(pattern)}
    for finish in (BuildSequences, BuildMentionTable, BuildContexts):
        run_in_process(finish(settings=run_of(workdir, corpus=IN_BLOCKS, machine={"processes": 2})))
    assert manifests(workdir) == manifests(corpus)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_sigkill_in_pretraining_ends_with_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    recipe = {"steps": 12, "warmup_steps": 1, "batch_size": 4, "checkpoint_every": 2}
    workdirs = [tmp_path / "whole", tmp_path / "broken"]
    for workdir, run in zip(workdirs, (run_luigi, run_forked), strict=True):
        shutil.copytree(corpus, workdir)
        write_run(workdir, corpus=IN_BLOCKS, pretraining=recipe, machine={"processes": 1})
        command = ["Pretrain", "--workdir", workdir]
        if workdir.name == "broken":
            process = start_forked(*command, cwd=tmp_path, said=tmp_path / "said.txt")
            wait_for(lambda: bool(list(tmp_path.glob("broken/pretrain-*/checkpoints/step-*"))), process)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            assert end(process) == -signal.SIGKILL
            assert "pretrain" not in folders(workdir)
        result = run(*command, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    assert "resumed after step" in result.stderr
    assert manifests(workdirs[0]) == manifests(workdirs[1])


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param("ExtractPages", signal.SIGTERM, marks=pytest.mark.smoke),
        pytest.param("BuildMentionTable", signal.SIGTERM, marks=pytest.mark.smoke),
        ("ExtractPages", signal.SIGINT),
        ("BuildMentionTable", signal.SIGINT),
    ],
)
def test_a_stopped_run_takes_everybody_along(corpus: Path, tmp_path: Path, name: str, number: signal.Signals) -> None:
    """SIGTERM and Ctrl-C end Beam's workers and Spark's within seconds; nothing half-done counts as done."""
    workdir = tmp_path / "work"
    shutil.copytree(corpus, workdir)
    finished = folders(workdir)[{"ExtractPages": "pages", "BuildMentionTable": "mentions"}[name]]
    shutil.rmtree(finished)
    with started(name, *SEVERAL_BLOCKS, "--workdir", workdir, "--processes", 2, cwd=tmp_path) as process:
        if name == "ExtractPages":
            wait_for(partial(has_blocks, finished, "blocks/block-*.json", 1), process)
        else:
            wait_for(lambda: any(member.name() == "java" for member in family(process)), process)
            time.sleep(5)
        members = family(process)
        assert len(members) > 1
        process.send_signal(number)
        assert process.wait(10) == 128 + number
        assert ended(members, 5)
        assert process.stdout is not None
        assert f"stopped by {number.name}; the same command goes on from here" in process.stdout.read()
    assert not (finished / "manifest.json").exists()
