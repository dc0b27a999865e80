"""The `luigi` command as users type it: every mistake is one line that names the thing and the remedy."""

import bz2
import gzip
import json
import os
import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from luigi import configuration, interface

from tests.support.stages import DUMP, run_forked
from tests.support.stages import run_luigi as luigi
from workflows.base.commandline import set_defaults, steps
from workflows.base.helping import of_stage, own_parameters

pytestmark = pytest.mark.slow


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    """The only line that a failed command wrote, beside those of the stages that went well."""
    assert result.returncode not in (0, -6, -11)
    lines = (result.stdout + result.stderr).strip().splitlines()
    lines = [line for line in lines if "Using incubator modules" not in line]  # Spark's JVM says so at every start
    told = r"[A-Z]\w+ +.* \| [\d.]+ s|work/run\.toml: .*|corpus\.dump .* is small: .*"
    lines = [line for line in lines if not re.fullmatch(told, line)]
    assert len(lines) == 1, lines
    return lines[0]


def manifests(folder: Path) -> list[str]:
    return sorted(path.parent.name.rsplit("-", 1)[0] for path in folder.rglob("manifest.json"))


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RunAll", "--steps"], "--steps: no value follows; wanted --steps=VALUE"),
        (["RunAll", "--set", "corpus.vocab=100"], "[corpus] has no field vocab; did you mean vocab_size?"),
        (["RunAll", "--set", "corpse.dump=x"], "no table corpse; did you mean corpus?"),
        (["RunAll", "--set", "vocab_size=3"], "as corpus.vocab_size=1000; it is in [corpus]"),
        (["RunAll", "--vocab-size", "100"], "RunAll has no such flag; wanted --set corpus.vocab_size=VALUE"),
        (["RunAll", "--stepps", "1"], "--stepps: RunAll has no such flag; did you mean --steps?"),
        (["RunAl"], "RunAl: no such stage; did you mean RunAll?"),
        (["RunAll", "--workers", "2"], "--workers: stays 1, since stages share one Spark session; use --processes"),
        (["RunAll", "--set", "machine.beam_options=nonsense"], "machine.beam_options=nonsense: wanted '--runner=NAME"),
        (["RunAll", "--set", "machine.beam_options=--runner=Foo"], "machine.beam_options: no runner Foo"),
        (["RunAll", "--workdir", "s3://bucket/x"], "--workdir s3://bucket/x: wanted a path on a POSIX file system"),
        (["RunAll", "--run", "no.toml"], "no.toml: cannot be read (No such file or directory)"),
        (["RunAll", "BuildSequences"], "BuildSequences: one stage at a time"),
        (["FineTune", "--task", "nerr"], "--task nerr: wanted entity_typing, relation_classification, ner, cloze_qa, "),
        (["FineTune", "--data", "nowhere"], "nowhere: no such folder"),
        (["Pretrain", "--steps", "0"], "steps is 0"),
        (["RunAll", "--set", "pretraining.entity_head=paper"], "entity_head paper: transformers' LUKE has the head"),
        (["Pretrain", "--set", "machine.tracker=x"], "tracker x: wanted module:function"),
        (["RunAll", "--dump", "nowhere.xml"], "--dump nowhere.xml: no such file; wanted a dump file, a glob"),
        (["RunAll", "--set", "sequences.tokenizer=nowhere"], "nowhere: found no vocab.json with merges.txt"),
        (["RunAll", "--set", "corpus.entity_vocab=no.tsv"], "no.tsv: cannot be read (No such file"),
        (["RunAll", "--set", "sequences.sentence_splitter=nltk"], "splitter nltk: wanted sentencex or module:function"),
    ],
)  # fmt: skip
def test_wrong_words_are_refused_before_anything_runs(tmp_path: Path, arguments: list[str], message: str) -> None:
    assert message in one_line(run_forked(*arguments, cwd=tmp_path))
    assert manifests(tmp_path) == []


def test_the_installed_command_says_the_same(tmp_path: Path) -> None:
    found, forked = (run("RunAll", "--steps", cwd=tmp_path) for run in (luigi, run_forked))
    assert one_line(found) == one_line(forked)
    assert found.returncode == forked.returncode


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there is a GPU")
def test_a_missing_device(tmp_path: Path) -> None:
    message = one_line(run_forked("Pretrain", "--dump", DUMP, "--device", "cuda:3", cwd=tmp_path))
    assert "device 'cuda:3' is not there (0 GPUs found); use cpu or auto" in message


@pytest.mark.smoke
def test_no_java(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    message = one_line(luigi("ResolveRedirects", "--dump", DUMP, cwd=tmp_path, env=env))
    assert "Java: not found on PATH; install Java 17 or later" in message


def test_an_old_java(tmp_path: Path) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    env = {**os.environ, "JAVA_HOME": str(tmp_path)}
    message = one_line(luigi("ResolveRedirects", "--dump", DUMP, cwd=tmp_path, env=env))
    assert "bin/java: is version 8; install Java 17 or later" in message


XML = bz2.decompress(DUMP.read_bytes())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html>\n<html></html>", "an HTML page, not a dump; download the file itself"),
        (XML[: len(XML) // 2], "to take the pages that are whole"),
        (XML.replace(b"<ns>0</ns>", b"<ns>1</ns>"), "no article among its"),
    ],
)
def test_what_is_no_whole_dump(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "dump.xml.bz2"
    path.write_bytes(content)
    line = one_line(run_forked("ExtractPages", "--dump", path, cwd=tmp_path))
    assert message in line
    assert "dump.xml.bz2" in line
    assert "pages" not in manifests(tmp_path)


def test_a_cut_dump_is_taken_when_allowed(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_bytes(XML[: len(XML) // 2])
    result = run_forked("ExtractPages", "--dump", path, "--set", "corpus.allow_truncated=true", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "the dump ends in the middle" in result.stderr
    manifest = json.loads(next((tmp_path / "work").glob("pages-*/manifest.json")).read_text())
    assert manifest["drops"]["pages:truncated"] == 1
    assert manifest["facts"]["pages_read"] > 10
    strict = run_forked("ExtractPages", "--set", "corpus.allow_truncated=false", cwd=tmp_path)
    assert "dump.xml: its end lacks </mediawiki>, so it was cut" in one_line(strict)


def test_overlapping_parts_are_refused(tmp_path: Path) -> None:
    for name in ("a.xml", "b.xml"):
        (tmp_path / name).write_bytes(XML)
    line = one_line(run_forked("ResolveRedirects", "--dump", tmp_path / "*.xml", cwd=tmp_path))
    assert "twice; do its parts overlap?" in line


def test_too_many_rejected_pages_stop_the_run(tmp_path: Path) -> None:
    path = tmp_path / "dump.xml"
    path.write_bytes(XML.replace(b"<ns>0</ns>", b"<ns>zero</ns>", 20))
    line = one_line(run_forked("ExtractPages", "--dump", path, cwd=tmp_path))
    assert "20 of 44 pages (45.45%) were dropped (20 broken_xml), more than corpus.max_rejected 0.001 allows" in line
    again = run_forked("ExtractPages", "--set", "corpus.max_rejected=0.5", cwd=tmp_path)
    assert again.returncode == 0, "the dump is remembered"
    strict = run_forked("ExtractPages", "--set", "corpus.max_rejected=0.001", cwd=tmp_path)
    assert one_line(strict).endswith(line.partition("20 of 44")[2]), "what passed a lax limit"
    assert "pages" in manifests(tmp_path), "and stays for it"


@pytest.mark.smoke
def test_a_failed_stage_is_no_success(tmp_path: Path) -> None:
    """Luigi's own exit status would be 0."""
    path = tmp_path / "dump.xml.gz"
    path.write_bytes(gzip.compress(XML)[:-2000])
    result = luigi("ExtractPages", "--dump", path, cwd=tmp_path)
    assert result.returncode == 30
    assert "the gzip stream ends in the middle" in one_line(result)


@pytest.mark.parametrize("name", steps())
def test_help_is_a_screen_or_two_and_names_what_a_stage_reads(name: str) -> None:
    stage = steps()[name]
    text = of_stage(stage)
    assert len(text.splitlines()) <= 80
    assert all(f"[{table}]" in text for table in stage.TABLES)
    assert all(flag in text for flag in ("--workdir", "--set", "--dump", "--dry-run", *own_parameters(stage)))


@pytest.mark.parametrize("name", steps())
def test_a_stage_has_few_parameters_and_few_classes_above_it(name: str) -> None:
    stage = steps()[name]
    assert len(stage.get_params()) <= 6
    assert len([each for each in stage.__mro__ if each.__module__.startswith("workflows")]) <= 8


@pytest.mark.smoke
def test_without_a_stage_all_are_listed(tmp_path: Path) -> None:
    text = luigi(cwd=tmp_path).stdout
    assert {"FetchDump", "BuildSequences", "RunAll"} <= {line.partition(" ")[0] for line in text.splitlines()}


@pytest.mark.smoke
def test_a_work_directory_remembers_what_began(tmp_path: Path) -> None:
    """A flag changes its file with a line; a dry run, and a command that cannot begin, change nothing."""
    assert run_forked("FetchDump", "--dump", DUMP, cwd=tmp_path).returncode == 0
    path = tmp_path / "work" / "run.toml"
    before = path.read_text()
    assert f'dump = "{DUMP}"' in before
    for arguments in (["--dump", "nowhere.xml"], ["--set", "corpus.held_out=0.2", "--dry-run"]):
        run_forked("FetchDump", *arguments, cwd=tmp_path)
        assert path.read_text() == before
    run_forked("FetchDump", "--dump", "nowhere.xml", "--workdir", "other", cwd=tmp_path)
    assert not (tmp_path / "other").exists()
    again = run_forked("FetchDump", "--set", "corpus.held_out=0.2", cwd=tmp_path)
    assert "work/run.toml: corpus.held_out = 0.2 (was 0.01)" in again.stderr
    assert "FetchDump is complete" in again.stderr


@pytest.mark.smoke
def test_help_answers_at_once(tmp_path: Path) -> None:
    """In less than 2 seconds of a processor; other work on the machine does not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert luigi("RunAll", "--help", cwd=tmp_path).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2


def test_the_user_chooses_the_scheduler(tmp_path: Path) -> None:
    """By a flag or a configuration; the local one is the default alone."""
    quick = "[core]\nrpc_retry_attempts = 1\nrpc_retry_wait = 0\nrpc_connect_timeout = 2\n"
    named = "scheduler_host = 127.0.0.1\nscheduler_port = 9\n"
    flags = ["--scheduler-host", "127.0.0.1", "--scheduler-port", "9"]
    for config, arguments in ((quick, flags), (quick + named, [])):
        (tmp_path / "luigi.cfg").write_text(config)
        result = luigi("FetchDump", "--dump", DUMP, *arguments, cwd=tmp_path)
        assert "http://127.0.0.1:9" in result.stderr
        assert result.returncode
        assert manifests(tmp_path) == []


@pytest.mark.parametrize("workers", ["3", "1", "0"])
def test_a_configuration_gives_luigi_no_further_workers(workers: str) -> None:
    """Stages would run in forks, each with a Spark of its own."""
    config = configuration.get_config()
    config.set("core", "workers", workers)
    set_defaults(["--local-scheduler"])
    assert interface.core().workers == 1
