"""What a run will take: samples of a dump, and what follows from them."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from pipeline.dump.fetch import demo_dump
from tests.support import DATA
from tests.support.page_props import sql
from workflows import FetchDump, Plan
from workflows.base import machine
from workflows.planning import costs, plan
from workflows.planning.costs import Cost, Estimate, Sample, estimate, read_costs, take_sample

ROWS = {"links": 22_668, "titles": 205}  # of the demo's dump, as README shows them


def test_a_small_dump_is_its_own_sample(tmp_path: Path) -> None:
    sample = take_sample([demo_dump()], str(tmp_path), "fixed")
    assert sample is not None
    assert (sample.file, sample.links, sample.titles) == (Path(demo_dump()).stat().st_size, *ROWS.values())
    assert 0 < sample.text < 5e6
    assert sample.seconds > 0


def test_samples_of_a_large_dump_stand_for_it(shared: Path, tmp_path: Path) -> None:
    """A third of the dump is read; links, titles and text are within a fifth of all."""
    dump = shared / "data/wikipedia/enwiki-2006-12k.xml.bz2"
    sample = take_sample([str(dump)], str(tmp_path), "fixed")
    assert sample is not None
    assert sample.file == 3 * (2 << 20)
    whole = sample.of(dump.stat().st_size)
    assert whole.text == pytest.approx(70.8e6, rel=0.2)
    assert whole.links == pytest.approx(739_139, rel=0.2)
    assert whole.titles == pytest.approx(12_236, rel=0.35)


def test_samples_lie_in_several_files(tmp_path: Path) -> None:
    paths = []
    for number, size in enumerate((5 << 20, 1 << 20, 6 << 20)):
        path = tmp_path / f"{number}.xml"
        path.write_bytes(bytes(size))
        paths.append(str(path))
    blocks = [
        (Path(block.path).stem, block.start >> 20, block.end >> 20) for block in costs._sample_blocks(paths)
    ]
    assert blocks == [("0", 0, 2), ("0", 4, 5), ("2", 2, 4)]
    assert [block.number for block in costs._sample_blocks(paths)] == [0, 1, 2]


def test_a_gzip_dump_has_no_sample(tmp_path: Path) -> None:
    assert take_sample([str(DATA / "wiki-40.xml.gz")], str(tmp_path), "fixed") is None


def test_an_estimate_follows_from_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    dump = Sample(file=4e6, text=10e6, links=2e6, titles=1e5, seconds=30)
    monkeypatch.setattr(machine, "processors", lambda: 4)
    cost = Cost(
        "links", start=4, begin=3, seconds=8, alone=0.25, process=5e8, worker=1e8, disk=40, scratch=10
    )
    found = estimate(cost, dump, 2, 4, characters=1, java=3)
    assert found == Estimate(8 + 32, 6 + 32 * (0.25 + 0.75 / 4), 9e8 + 3, 80e6, 20e6)
    # More processes than processors take memory, and save no time.
    more = estimate(cost, dump, 2, 8, characters=1)
    assert (more.seconds, more.memory) == (found.seconds, 13e8)
    extraction = Cost("file", start=1, begin=1, sampled=1.5, disk=1.5)
    assert estimate(extraction, dump, 1, 2, characters=1) == Estimate(46, 23.5, 0, 6e6, 0)
    for characters, amount in ((5_000_000, 5), (20_000_000, 10)):  # the sample's bound, or all of the text
        assert estimate(Cost("sample", 0, seconds=1), dump, 1, 1, characters=characters).seconds == amount


def test_every_stage_of_the_corpus_has_a_cost(tmp_path: Path) -> None:
    stages = Plan(dump=str(DATA / "wiki-40.xml"), workdir=str(tmp_path)).stages
    assert {stage.title for stage in stages} == set(read_costs()[2])


def test_the_plan_says_what_is_made_and_what_is_to_make(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"dump": str(DATA / "wiki-40.xml"), "workdir": str(tmp_path)}
    FetchDump(**given).run()
    (tmp_path / "page_props.sql").write_bytes(sql([[]]))
    told = Plan(**given, processes=2, page_props=str(tmp_path / "page_props.sql"))
    assert not told.complete()
    told.run()
    assert told.complete()
    lines = capsys.readouterr().out.splitlines()
    found = {line.split()[0]: line.split()[1:] for line in lines}
    assert found["FetchDump"] == ["made"]
    assert found["BuildMentionTable"][:2] == ["to", "make"]
    assert found["FetchQids"] == ["to", "make", "not", "estimated"]
    assert lines[-1].startswith("all                without FetchQids ")
    assert len(found["BuildSequences"]) == 2 + 5
    assert lines[-1].startswith("all ")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("tmp")] == []


def test_what_does_not_fit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = [Estimate(1, 1, 3e9, 40e9, 5e9), Estimate(1, 1, 4e9, 50e9, 0)]
    told = Plan(dump=str(DATA / "wiki-40.xml"), workdir=str(tmp_path))
    monkeypatch.setattr(machine, "memory_bytes", lambda: 8 * 10**9)
    usage = namedtuple("usage", ["total", "used", "free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 96 * 10**9))
    assert told.what_does_not_fit(needed) == []
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2 * 10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 94 * 10**9))
    memory, disk = told.what_does_not_fit(needed)
    assert memory == "memory: 4.0 GB are wanted, 2.0 GB are there; lower --processes"
    assert disk == (
        f"--workdir {tmp_path} and --scratch {tmp_path}/.scratch: 94.00 GB are free, and the plan wants 95.07 GB "
        "there; make room, or pass another --workdir or --scratch"
    )
    monkeypatch.setattr(plan, "take_sample", lambda *_: Sample(1, 1, 1, 1, 1e-3))
    monkeypatch.setattr(machine, "memory_bytes", lambda: 10**6)
    with pytest.raises(ValueError, match=r"^memory: .* lower --processes"):
        told.run()
