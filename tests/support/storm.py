"""A storm: the stages up to BuildSequences and BuildMentionTable, disturbed at random moments, again and again.

    python -m tests.support.storm --disturbances 100

The work directory lies in a small file system of its own, in memory, so that it can be full. A run is disturbed once,
in one of the ways of `KINDS`, and has to come to an end; then the same command is run again. When all stages are there,
they are compared with those of a calm run, and removed before the next disturbance. After the last one a calm run
finishes the work: it must have the same files with the same bytes as the first calm run, and no process of the storm
may be left.

A moment is one of the time that the calm run took, less the share of it whose files are there.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import workflows
from pipeline.storage.files import file_sha256
from tests.support.killed import ended, family

KINDS = {  # with how often each comes, of 20
    "all killed": 8, "a worker killed": 4, "Java killed": 4, "disk full": 3, "all stopped for a while": 1,
}  # fmt: skip
STAGES = ("BuildMentionTable", "BuildSequences")
_LUIGI = str(Path(sys.executable).with_name("luigi"))
_TOKEN = "LUKE_STORM"  # in the environment of each process of a storm
_LONGEST = 600  # seconds that a run may take to come to an end
_GLANCE = 0.05  # seconds between two looks at the processes
_START = 0.3  # of the time of a calm run, in which one begins that has all files but the last
_TRACEBACK = "Traceback (most recent call last)"


@dataclass
class Storm:
    """Disturbs runs in one work directory.

    Attributes:
        workdir: of the runs; `disk full` fills its file system.
        stages: that the runs are of.
        dump: what they read, with further options.
        pause: seconds for which a run is stopped.
        chance: decides what happens, and when.
        seconds: that the first calm run took.
        whole: the files that it left.
    """

    workdir: Path
    stages: Sequence[str]
    dump: Sequence[str]
    pause: float
    chance: random.Random
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    finished: int = 0
    seconds: float = 0.0
    whole: int = 1

    def calm(self) -> dict[str, str]:
        """Run what is missing undisturbed: what is there then."""
        started = time.monotonic()
        for stage in self.stages:
            with self.running(stage) as (process, output):
                assert process.wait(_LONGEST) == 0, output()
        self.seconds = self.seconds or time.monotonic() - started
        content = self.content()
        self.whole = len(content)
        return content

    @contextlib.contextmanager
    def running(self, stage: str) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
        """A run of a stage, and what it has said; no process of it is left behind."""
        command = [_LUIGI, "--module", "workflows", stage, *self.dump]
        command += ["--workdir", str(self.workdir / "work"), "--processes", "2"]
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                command,
                cwd=self.workdir.parent,
                env={**os.environ, _TOKEN: self.token, "PYTHONFAULTHANDLER": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

            def output() -> str:
                log.seek(0)
                return log.read().decode("utf-8", "replace")

            try:
                yield process, output
            finally:
                for member in family(process) if process.poll() is None else ():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        member.kill()
                process.wait()

    def content(self) -> dict[str, str]:
        """The SHA-256 of every file by its path."""
        return {name: file_sha256(str(path)) for name, path in self.files().items()}

    def files(self) -> dict[str, Path]:
        """Every file by its path, but for what tells the time of a run, and for locks and scratch."""
        work = self.workdir / "work"
        paths = (Path(folder, name) for folder, _, names in os.walk(work) for name in names)
        files = {str(path.relative_to(work)): path for path in paths if path.name not in ("run.json", "stages.json")}
        return {name: path for name, path in files.items() if not name.startswith(".")}

    def missing(self) -> list[str]:
        """The stages that are not finished."""
        folders = {name: getattr(workflows, name).FOLDER for name in self.stages}
        return [
            name for name, folder in folders.items() if not list(self.workdir.glob(f"work/{folder}-*/manifest.json"))
        ]

    def disturb(self, kind: str) -> str:
        """Disturb a run of the first stage that is missing, at any moment; says what became of it."""
        left = 1 - len(self.files()) / self.whole
        moment = self.chance.uniform(0, self.seconds * max(left, _START))
        with self.running(self.missing()[0]) as (process, output):
            with contextlib.suppress(subprocess.TimeoutExpired):
                assert process.wait(moment) == 0, output()
                return ""
            members = family(process)
            assert self.left() or process.poll() is not None
            is_struck = self.strike(kind, process, members)
            try:
                status = process.wait(_LONGEST)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{kind}: the run does not end\n{output()}") from None
            for path in self.workdir.glob("filler"):
                path.unlink()
            assert ended(members, 20), [member for member in members if member.is_running()]
            said = output()
            assert _TRACEBACK not in said or kind == "Java killed", said  # Spark's own threads print theirs
            if status == 0:
                return "went on to the end" if is_struck else ""
            if kind == "all killed":
                assert status == -signal.SIGKILL, said
                return "ended"
            assert is_struck, said
            assert kind != "all stopped for a while", said
            assert status > 0, said
            assert re.search(r"(?m)^(error|ERROR: [A-Z]\w+): .+", said), said
            return "ended with an error in a line"

    def strike(self, kind: str, process: subprocess.Popen[bytes], members: Sequence[psutil.Process]) -> bool:
        """Disturb a run; False where it ends before there is anybody to strike."""
        if kind == "all killed":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # those with a group of their own have to notice
        elif kind == "disk full":
            with open(self.workdir / "filler", "wb", buffering=0) as stream, contextlib.suppress(OSError):
                while stream.write(bytes(1 << 16)):
                    pass
        elif kind == "all stopped for a while":
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for member in members:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        member.send_signal(number)
                time.sleep(self.pause if number == signal.SIGSTOP else 0)
        else:
            is_java = kind == "Java killed"
            while process.poll() is None:  # until there is one
                with contextlib.suppress(psutil.NoSuchProcess):
                    members = family(process)[1:]
                    if found := [each for each in members if (each.name() == "java") == is_java]:
                        self.chance.choice(found).kill()
                        return True
                time.sleep(_GLANCE)
            return False
        return True

    def run(self, disturbances: int, minutes: float) -> None:
        """Raises: AssertionError where anything is otherwise than it has to be."""
        calm = self.calm()
        until = time.monotonic() + 60 * minutes
        kinds = self.chance.sample(list(KINDS), len(KINDS))  # each once, and then as they come
        kinds += self.chance.choices(list(KINDS), list(KINDS.values()), k=max(0, disturbances - len(kinds)))
        while self.outcomes.total() < disturbances and time.monotonic() < until:
            kind = kinds[self.outcomes.total()]
            if not self.missing():
                shutil.rmtree(self.workdir / "work")
            if outcome := self.disturb(kind):
                self.outcomes[kind, outcome] += 1
                print(f"{self.outcomes.total():4d} {kind}: {outcome}", flush=True)
            if not self.missing():
                assert self.content() == calm, different(self.content(), calm)
                self.finished += 1
        found = self.calm()
        assert found == calm, different(found, calm)
        assert not (left := self.left()), left
        assert not (scratch := list(self.workdir.glob("work/.scratch/run-*"))), scratch

    def left(self) -> list[str]:
        """The processes of this storm that are still there."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(_TOKEN) == self.token and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(str(process))
        return found


def different(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """The files that only one of two work directories has, or that differ."""
    return sorted(path for path in found.keys() | wanted.keys() if found.get(path) != wanted.get(path))


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A file system of its own in memory, which only this process and its children see."""
    with tempfile.TemporaryDirectory() as folder:
        mounted = Path(folder, "disk")
        mounted.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", mounted], check=True)
        try:
            yield mounted
        finally:
            subprocess.run(["umount", "--lazy", mounted], check=True)


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.support.storm", description=__doc__)
    parser.add_argument("--disturbances", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=120, help="no further disturbance after so many")
    parser.add_argument("--pause", type=float, default=60, help="seconds for which a run is stopped")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dump", default="demo")
    parser.add_argument("--block-size", default="65536")
    parser.add_argument("--megabytes", type=int, default=512, help="size of the file system")
    parser.add_argument("--stages", nargs="+", default=STAGES, help="default: %(default)s")
    parser.add_argument("--own-namespace", action="store_true", help=argparse.SUPPRESS)
    values = parser.parse_args()
    if not values.own_namespace:
        again = [sys.executable, "-m", "tests.support.storm", *sys.argv[1:], "--own-namespace"]
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--mount", *again])
    with small_disk(values.megabytes) as workdir:
        dump = ["--dump", values.dump, "--set", f"corpus.block_size={values.block_size}"]
        storm = Storm(workdir, values.stages, dump, values.pause, random.Random(values.seed))
        started = time.monotonic()
        storm.run(values.disturbances, values.minutes)
    print(
        f"{storm.outcomes.total()} disturbances in {(time.monotonic() - started) / 60:.1f} minutes, seed {values.seed}"
    )
    for (kind, outcome), count in sorted(storm.outcomes.items()):
        print(f"{count:4d}  {kind}: {outcome}")
    times = f"{storm.finished} times within the storm and once after it"
    print(f"all stages came to their end {times}, each time with the files of a calm run")


if __name__ == "__main__":
    main()
