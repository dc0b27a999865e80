"""Several runs of one scheduler: each stage is made once, and who waits for another goes on with what that leaves."""

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import luigi
import pytest
from luigi.execution_summary import _summary_dict
from luigi.scheduler import Scheduler

from tests.support.stages import run_of
from workflows import ExportHuggingFace, Pretrain, ResolveRedirects
from workflows.base.commandline import PatientWorker

MADE: set[luigi.Task] = set()
RUNS: list[str] = []
started, may_end = threading.Event(), threading.Event()


class Slow(luigi.Task):
    """Is made when it may be; the run `fails` fails."""

    number = luigi.IntParameter(default=0)

    def complete(self) -> bool:
        return self in MADE

    def run(self) -> None:
        RUNS.append(threading.current_thread().name)
        started.set()
        assert may_end.wait(60)
        if threading.current_thread().name == "fails":
            raise ValueError("no")
        MADE.add(self)


class After(Slow):
    """Needs another."""

    def requires(self) -> luigi.Task:
        return Slow()


class Demanding(Slow):
    """Needs what one run has at a time."""

    resources: ClassVar[dict[str, int]] = {"spark": 1}


class OneByOne:
    """A scheduler that answers one call at a time, as luigid does."""

    def __init__(self) -> None:
        self.scheduler, self.lock = Scheduler(), threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self.lock:
                return getattr(self.scheduler, name)(*arguments, **options)

        return call


class Run(threading.Thread):
    """A run of a stage."""

    def __init__(self, scheduler: OneByOne, name: str, stage: luigi.Task) -> None:
        super().__init__(name=name)
        self.stage = stage
        self.worker = PatientWorker(scheduler=scheduler, worker_id=name, wait_interval=0.01, wait_jitter=0.01)
        self.start()

    def run(self) -> None:
        with self.worker:
            self.worker.add(self.stage)
            self.worker.run()

    def outcome(self) -> set[str]:
        """By Luigi's words for what became of its stages."""
        self.join(60)
        assert not self.is_alive()
        return {state for state, tasks in _summary_dict(self.worker).items() if tasks}


@pytest.fixture
def scheduler() -> OneByOne:
    MADE.clear()
    RUNS.clear()
    started.clear()
    may_end.clear()
    return OneByOne()


def waiting(run: Run) -> None:
    while not run.worker._waits_for:
        assert run.is_alive()


MAY_FIND = {"completed", "already_done"}


@pytest.mark.parametrize(
    ("name", "stage", "outcomes", "runs"),
    [
        ("first", Slow, ({"completed"}, {"already_done"}), ["first"]),
        ("first", After, ({"completed"}, MAY_FIND), ["first", "second"]),
        ("fails", After, ({"ever_failed", "failed"}, MAY_FIND), ["fails", "second", "second"]),
    ],
    ids=["the same stage", "what it needs", "what fails elsewhere"],
)
def test_what_another_run_makes_is_waited_for_and_the_rest_is_made(
    scheduler: OneByOne, name: str, stage: type[luigi.Task], outcomes: tuple[set[str], ...], runs: list[str]
) -> None:
    first = Run(scheduler, name, Slow())
    assert started.wait(60)
    second = Run(scheduler, "second", stage())
    waiting(second)
    may_end.set()
    assert first.outcome() == outcomes[0]
    assert second.outcome() <= outcomes[1]
    assert runs == RUNS
    assert (After() in MADE) == (stage is After)


def test_a_run_that_fails_ends(scheduler: OneByOne) -> None:
    may_end.set()
    assert "failed" in Run(scheduler, "fails", After()).outcome()
    assert RUNS == ["fails"]


def test_what_one_run_has_at_a_time_is_waited_for(scheduler: OneByOne) -> None:
    """And what needs nothing of it is made meanwhile."""
    first = Run(scheduler, "first", Demanding())
    assert started.wait(60)
    second = Run(scheduler, "second", Demanding(number=1))
    waiting(second)
    third = Run(scheduler, "third", Slow())
    while "third" not in RUNS:
        assert third.is_alive()
    assert RUNS == ["first", "third"]
    may_end.set()
    assert [run.outcome() for run in (first, third)] == [{"completed"}] * 2
    assert second.outcome() <= {"completed", "already_done"}
    assert RUNS == ["first", "third", "second"]


def test_what_stages_need() -> None:
    assert ResolveRedirects().process_resources() == {"spark": 1}
    assert Pretrain().process_resources() == {"gpu": 1}
    on_processors = run_of(machine={"device": "cpu"})
    for stage in (Pretrain, ExportHuggingFace):
        assert stage(settings=on_processors).process_resources() == {}
