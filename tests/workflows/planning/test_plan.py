"""The costs of a run follow from a dump's size, and what does not fit is said."""

import re
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from pipeline.dump import download
from tests.support import DATA, ROOT
from tests.support.page_props import sql
from tests.support.stages import changed, run_forked, run_of
from workflows import FetchDump, Plan
from workflows.base import machine
from workflows.planning import plan
from workflows.planning.plan import Cost, Estimate, read_costs
from workflows.run.file import Run

DUMP = str(DATA / "wiki-40.xml")


def test_an_estimate_follows_from_the_dumps_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "processors", lambda: 4)
    cost = Cost(start=4, begin=3, seconds=8, alone=0.25, disk=40, scratch=10)
    found = cost.estimate(2e6, 4, speed=2)
    assert found == Estimate(2 * (4 + 16), 2 * (3 + 16 * (0.25 + 0.75 / 4)), 80e6, 20e6)
    assert cost.estimate(2e6, 8, speed=2) == found, "more processes than processors save no time"


def test_every_stage_of_the_corpus_has_a_cost(tmp_path: Path) -> None:
    stages = Plan(settings=run_of(tmp_path, corpus={"dump": DUMP})).stages
    assert {stage.title for stage in stages} == set(read_costs()[1])


def test_the_plan_says_what_is_made_and_what_is_to_make(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = {"dump": DUMP, "page_props": str(tmp_path / "page_props.sql")}
    FetchDump(settings=run_of(tmp_path, corpus={"dump": DUMP})).run()
    (tmp_path / "page_props.sql").write_bytes(sql([[]]))
    step = Plan(settings=run_of(tmp_path, corpus=corpus, machine={"processes": 2}))
    assert not step.complete()
    step.run()
    assert step.complete()
    lines = capsys.readouterr().out.splitlines()
    found = {line.split()[0]: line.split()[1:] for line in lines}
    assert found["FetchDump"] == ["made"]
    assert found["BuildMentionTable"][:2] == ["to", "make"]
    assert len(found["BuildSequences"]) == 2 + 4
    assert found["FetchQids"] == ["not", "estimated"]
    assert lines[-1].startswith("all ")


@pytest.mark.smoke
@pytest.mark.parametrize("path", sorted((ROOT / "examples/runs").glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_run_starts_up_to_its_plan(tmp_path: Path, path: Path) -> None:
    """The dump of the paper's is 20 GB: a small one is named in its place."""
    flags = ["--dump", DUMP] if path.stem == "paper" else []
    result = run_forked("Plan", "--run", path, *flags, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1].startswith("all ")
    gold = Run.read(str(tmp_path / "work")).linking.gold
    assert (path.stem == "demo") == Path(gold).is_file(), "paths are relative to the file"


def set_free_room(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    """Let each disk have so many free bytes, as the machine's own may have fewer."""
    usage = namedtuple("usage", ["total", "used", "free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, free))


def test_what_does_not_fit_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages come one after another: what they write adds up, and the largest scratch is the one that counts."""
    costs = {"ExtractPages": Cost(1, disk=40, scratch=5), "BuildSequences": Cost(1, disk=50)}
    monkeypatch.setattr(plan, "read_costs", lambda: (1.0, costs))
    monkeypatch.setattr(plan, "packed_size", lambda path: 1e9)
    step = Plan(settings=run_of(tmp_path, corpus={"dump": DUMP}))
    set_free_room(monkeypatch, 96 * 10**9)
    step.run()
    set_free_room(monkeypatch, 94 * 10**9)
    line = (
        f"--workdir {tmp_path} and machine.scratch {tmp_path}/.scratch: 94.00 GB are free, and the plan wants 95.07 GB "
        "there; make room, or pass another --workdir or machine.scratch"
    )
    with pytest.raises(ValueError, match=re.escape(line)):
        step.run()
    step.clone(settings=changed(step.settings, machine={"spark_master": "spark://somewhere:7077"})).run()


def test_a_dump_that_is_not_here_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its published size tells, if there is one; the download is on disk, too."""
    set_free_room(monkeypatch, 30 * 10**9)
    sources = [download.Source("a.xml.bz2", "https://wiki/a.xml.bz2", 2 * 10**9)]
    monkeypatch.setattr(plan, "remote_sources", lambda dump: sources)
    step = Plan(settings=run_of(tmp_path, corpus={"dump": "https://wiki/a.xml.bz2"}))
    step.run()
    [fetched] = [line.split() for line in capsys.readouterr().out.splitlines() if "FetchDump" in line]
    assert fetched[-2:] == ["2.0", "0.0"]
    sources[0] = download.Source("a.xml.bz2", "https://wiki/a.xml.bz2", None)
    with pytest.raises(ValueError, match="its size is not known before it is downloaded; run FetchDump"):
        step.run()
