"""A stage of a few lines, and one that is made from it."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import luigi
import pytest

from pipeline import storage
from pipeline.storage import locks
from workflows.base import outlook
from workflows.base.stage import Result, Stage
from workflows.run.file import Run
from workflows.stages.fine_tuning import RetriesFailures


def nothing() -> None:
    pass


class Upper(Stage):
    """Writes a file."""

    FOLDER = "upper"
    content: ClassVar[bytes] = b"1"

    def work(self) -> Result:
        storage.write_bytes(storage.join(self.folder, "file"), self.content)
        return Result((storage.describe(self.folder, "file"),))


class Lower(Stage):
    """Copies it."""

    FOLDER = "lower"
    meanwhile: ClassVar[Callable[[], None]] = nothing

    def requires(self) -> dict[str, Stage]:
        return self.cloned(Upper)

    def work(self) -> Result:
        type(self).meanwhile()
        shutil.copy(Path(self.clone(Upper).folder, "file"), self.folder)
        return Result((storage.describe(self.folder, "file"),))


@pytest.fixture
def lower(tmp_path: Path) -> Lower:
    stage = Lower(settings=Run(str(tmp_path)))
    stage.clone(Upper).run()
    return stage


def test_what_a_stage_reads_is_not_made_anew_meanwhile(lower: Lower, monkeypatch: pytest.MonkeyPatch) -> None:
    upper = lower.clone(Upper)

    def make_anew() -> None:
        Path(upper.folder, "file").unlink()
        with pytest.raises(ValueError, match=f"^{upper.folder}: another run makes it or reads it"):
            upper.run()
        Path(upper.folder, "file").write_bytes(b"1")

    monkeypatch.setattr(Lower, "meanwhile", make_anew)
    lower.run()
    assert lower.complete()


def test_what_another_run_makes_is_not_read(lower: Lower) -> None:
    upper = lower.clone(Upper)
    line = f"^{upper.folder}: another run makes it; wait for it"
    with locks.hold(upper.folder), pytest.raises(ValueError, match=line):
        lower.run()
    assert not lower.output().exists()


@pytest.mark.parametrize("changes", [lambda folder: shutil.rmtree(folder), lambda folder: (folder / "file").unlink()])
def test_what_has_changed_since_a_run_began_is_not_read(lower: Lower, changes: Callable[[Path], object]) -> None:
    upper = lower.clone(Upper)
    assert upper.complete()
    changes(Path(upper.folder))
    with pytest.raises(ValueError, match=f"^{upper.folder}: has changed since this run began; run it again"):
        lower.run()
    assert not lower.output().exists()


class Search(RetriesFailures):
    """Runs others, of which one has failed."""

    FOLDER = "search"

    def work(self) -> Result:
        self._has_run = True
        return Result((), facts={"failed": 1})


class AfterSearch(Stage):
    FOLDER = "after_search"

    def requires(self) -> dict[str, Stage]:
        return self.cloned(Search)

    def work(self) -> Result:
        return Result(())


def test_a_search_in_which_one_failed_is_read_by_another_process(tmp_path: Path) -> None:
    """There the stage is another object, which has not run."""
    search = Search(settings=Run(str(tmp_path)))
    search.run()
    luigi.Task.clear_instance_cache()
    after = AfterSearch(settings=Run(str(tmp_path)))
    assert after.clone(Search) is not search
    assert not after.clone(Search).complete()  # the next run tries the failed one again
    after.run()
    assert after.output().exists()


def test_what_came_out_the_same_may_be_read_by_others(lower: Lower) -> None:
    upper = lower.clone(Upper)
    before = Path(upper.output().path).stat().st_mtime_ns
    with locks.hold(upper.folder, reads=True):
        upper.run()
    assert Path(upper.output().path).stat().st_mtime_ns == before


def test_what_another_run_has_made_meanwhile_is_not_made_again(
    lower: Lower, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(locks.WAITS, "1")
    twin = Lower(settings=Run(f"{lower.workdir}/../{Path(lower.workdir).name}"))
    assert (twin.task_id, twin.folder) != (lower.task_id, "")
    assert twin.folder == lower.folder
    entered, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        assert go_on.wait(60)

    monkeypatch.setattr(Lower, "meanwhile", wait)
    threads = [threading.Thread(target=stage.run) for stage in (lower, twin)]
    with caplog.at_level("INFO", "pipeline"):
        threads[0].start()
        assert entered.wait(60)
        entered.clear()
        threads[1].start()
        while "waits for another run" not in caplog.text:
            assert threads[1].is_alive()
        go_on.set()
        for thread in threads:
            thread.join(60)
    assert not entered.is_set()
    assert lower.complete()
    assert twin.complete()


def test_many_runs_may_test_the_work_directory_at_once(tmp_path: Path) -> None:
    failures = []

    def check() -> None:
        try:
            for _ in range(200):
                Upper(settings=Run(str(tmp_path))).check_machine()
        except ValueError as error:
            failures.append(error)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == []


def test_finished_stages_are_listed_and_the_newest_is_found(lower: Lower, tmp_path: Path) -> None:
    lower.run()
    names = {"Upper": Path(lower.clone(Upper).folder).name, "Lower": Path(lower.folder).name}
    assert storage.finished_stages(str(tmp_path)) == names
    assert storage.finished_folder(str(tmp_path), "Lower") == lower.folder
    for unknown in ("Search", "Low"):
        with pytest.raises(ValueError, match=f"no finished {unknown} there; finished are Upper, Lower"):
            storage.finished_folder(str(tmp_path), unknown)
    for task in ("ner", "entity_typing"):
        storage.record_finished(str(tmp_path), [(f"FineTune ({task}, luke, seed 42)", f"finetune-{task}")])
    for name, folder in (("FineTune", "entity_typing"), ("FineTune (ner", "ner")):
        assert storage.finished_folder(str(tmp_path), name) == str(tmp_path / f"finetune-{folder}")
    storage.record_finished(str(tmp_path), [("Upper", "another")])
    assert list(storage.finished_stages(str(tmp_path)).items())[-1] == ("Upper", "another")


def test_the_outlook_names_what_differs(lower: Lower, monkeypatch: pytest.MonkeyPatch) -> None:
    lower.run()
    assert outlook.to_make(lower) == "Lower: all is done"
    monkeypatch.setattr(Upper, "VERSION", 2)
    luigi.Task.clear_instance_cache()
    lines = outlook.table(Lower(settings=lower.settings)).splitlines()
    assert [line.split()[0] for line in lines] == ["Upper", "Lower"]
    assert lines[0].endswith("to make  version 2, was 1")
    assert lines[1].endswith("to make  made from Upper")
