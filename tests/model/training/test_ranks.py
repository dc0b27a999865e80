"""Several processes train as one does."""

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from model.data.shards import Corpus
from model.pretraining.loader import Loader
from model.training.metrics_log import read_lines
from model.training.ranks import ALONE
from tests.support import ROOT, forked
from tests.support.models import words_of_transformers
from tests.support.pretraining import SHORT, rows_of
from tests.support.shards import random_rows, write_sequences

SCRIPT = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
import torch
from safetensors.torch import save_file
from model.luke.config import PRESETS
from model.pretraining.recipes import RECIPES, Phase
from model.pretraining.phases import PhaseTraining
from model.training import ranks
from tests.support.models import TINY
from tests.support.pretraining import SHORT, rows_of, run

torch.set_num_threads(1)
ranks._SMALL = 100  # so that some gradients go by themselves
sequences, output, dropout = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
signals = sys.argv[4:]  # of which signal, by which process, after which step
rank = os.environ.get("RANK", "0")
PRESETS["tiny"] = replace(TINY, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
phases = (Phase(12, 2e-3, 2, "new"), Phase(8, 1e-3, 2, "all"))
RECIPES["tiny"] = replace(SHORT, phases=phases, batch_size=6, checkpoint_every=5)

step_of = torch.optim.AdamW.step
def step(self, *arguments):
    if not (output / "gradients.safetensors").exists() and rank == "0":
        output.mkdir(exist_ok=True)
        gradients = [p.grad for group in self.param_groups for p in group["params"]]
        kept = {str(n): g.clone() for n, g in enumerate(gradients) if g is not None}
        save_file(kept, output / "gradients.safetensors")
    return step_of(self, *arguments)
torch.optim.AdamW.step = step

with_totals = PhaseTraining.with_totals
def record_rows(self, parts):
    with open(f"{output}-rows-{rank}", "a") as file:
        print(*sorted(row.hex() for row in rows_of(parts)), file=file)
    return with_totals(self, parts)
PhaseTraining.with_totals = record_rows

finish = PhaseTraining.finish_step
def finish_step(self, phase, done, *rest):
    if signals[1:] == [rank, str(done)]:
        os.kill(os.getpid(), int(signals[0]))
    finish(self, phase, done, *rest)
PhaseTraining.finish_step = finish_step

run(sequences, output, **json.loads(os.environ.get("CHANGES", "{}")))
"""


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some sequences have no entity, so that a process may have a batch without any."""
    rows = random_rows(13)
    for row in rows[::2]:
        row |= {"entity_ids": [], "entity_starts": [], "entity_ends": []}
    return write_sequences(tmp_path_factory.mktemp("sequences"), rows, held_out=random_rows(7, seed=1))


def start(
    sequences: Path, output: Path, count: int, dropout: float, *signals: int, **changes: object
) -> list[ForkServerProcess]:
    """The processes of a run with these changes, as torchrun would start them; `signals`: see SCRIPT."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common["CHANGES"] = json.dumps(changes)
    return [
        forked.start(
            SCRIPT, sequences, output, dropout, *signals,
            environment=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            errors=output.with_name(f"{output.name}-errors-{rank}.txt"),
        )
        for rank in range(count)
    ]  # fmt: skip


def finish(processes: list[ForkServerProcess]) -> list[int]:
    return [forked.end(process) for process in processes]


@pytest.mark.parametrize("start_of_entities", ["random", pytest.param("titles", marks=pytest.mark.slow)])
def test_two_processes_equal_one(sequences: Path, tmp_path: Path, start_of_entities: str) -> None:
    """Also around a base model, where entities begin with words and alone are masked: a process may have none."""
    changes: dict[str, object] = {}
    if start_of_entities == "titles":
        words_of_transformers("RobertaModel").save_pretrained(tmp_path / "base")
        changes = {"base_model": str(tmp_path / "base"), "masked_word_share": 0.0, "predicts_unknown": False}
        changes["entity_start"] = start_of_entities
    for count in (1, 2):
        assert finish(start(sequences, tmp_path / str(count), count, 0.0, **changes)) == [0] * count
    one, two = (tmp_path / name for name in ("1", "2"))
    first, second = (load_file(folder / "gradients.safetensors") for folder in (one, two))
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], atol=1e-6, rtol=0)
    lines = [
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()] for folder in (one, two)
    ]
    assert len(lines[0]) == len(lines[1]) == 20
    for name in ("masked_word_loss", "masked_entity_loss")[bool(changes) :]:
        assert lines[0][0][name] == pytest.approx(lines[1][0][name], rel=0, abs=1e-6)
    for alone, together in zip(*lines, strict=True):
        assert alone == pytest.approx(together, abs=1e-5)
    held_out = [read_lines(folder / "evaluation.jsonl") for folder in (one, two)]
    assert [line["step"] for line in held_out[0]] == [5, 10, 15, 20]
    for alone, together in zip(*held_out, strict=True):
        assert alone == pytest.approx(together, rel=1e-3), "each process has evaluated its share"
    weights = [load_file(folder / "model.safetensors") for folder in (one, two)]
    for name, tensor in weights[0].items():
        # The true gradient of a key's bias is zero: what is left is rounding, which Adam makes large.
        if not name.endswith("attention.key.bias"):
            torch.testing.assert_close(tensor, weights[1][name], atol=1e-4, rtol=0)


@pytest.fixture(scope="module")
def whole(sequences: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two processes that nothing came between."""
    output = tmp_path_factory.mktemp("ranks") / "whole"
    assert finish(start(sequences, output, 2, 0.1)) == [0, 0]
    return output


def test_dropout_changes_neither_order_nor_masks(sequences: Path, whole: Path) -> None:
    """Two processes with dropout are given, a step at a time, what one is without."""
    corpus, recipe = Corpus(sequences), replace(SHORT, batch_size=6)
    loader = Loader(corpus, recipe, profile="fixed", seed=1, entities=True)
    files = [whole.with_name(f"whole-rows-{rank}").read_text().splitlines() for rank in (0, 1)]
    assert [len(lines) for lines in files] == [20, 20]
    for step, lines in enumerate(zip(*files, strict=True)):
        together = [row for line in lines for row in line.split()]
        assert sorted(together) == sorted(row.hex() for row in rows_of(loader(step)))


@pytest.mark.parametrize("dead", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_process_that_dies_ends_the_others_and_the_run_goes_on(
    sequences: Path, tmp_path: Path, whole: Path, dead: int
) -> None:
    """Also the first, which writes the checkpoints and through which the others found each other."""
    broken = tmp_path / "broken"
    ends = finish(start(sequences, broken, 2, 0.1, signal.SIGKILL, dead, 13))
    assert ends[dead] == -signal.SIGKILL
    assert ends[1 - dead] == 1
    assert (broken / "checkpoints/step-00000012/state.json").is_file()
    assert_ends_as(whole, sequences, broken)


def test_sigterm_to_one_process_stops_all_after_the_same_step(sequences: Path, tmp_path: Path, whole: Path) -> None:
    broken = tmp_path / "broken"
    ends = finish(start(sequences, broken, 2, 0.1, signal.SIGTERM, 1, 7))
    assert all(ends)
    assert (broken / "checkpoints/step-00000007/state.json").is_file()
    assert not (broken / "model.safetensors").exists()
    assert_ends_as(whole, sequences, broken)


def assert_ends_as(whole: Path, sequences: Path, broken: Path) -> None:
    """The same call goes on, to the same bits."""
    assert finish(start(sequences, broken, 2, 0.1)) == [0, 0]
    for name in ("metrics.jsonl", "model.safetensors"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
def test_torchrun_ends_with_an_error_when_a_process_is_killed(sequences: Path, tmp_path: Path) -> None:
    """Nobody waits for the one that is gone, and nobody is left behind."""
    # In one piece: both processes write to the same pipe.
    script = f"import os; os.write(1, b'pid %d\\n' % os.getpid())\n{SCRIPT}"
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    call = [sys.executable, "-c", script, str(sequences), str(tmp_path / "out"), "0.1", "9", "1", "13"]
    done = subprocess.run(
        [sys.executable, *launch, *call],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "Signal 9 (SIGKILL) received by PID" in done.stderr
    assert (tmp_path / "out/checkpoints/step-00000012/state.json").is_file()
    assert not (tmp_path / "out/model.safetensors").exists()
    pids = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("pid ")]
    assert len(pids) == 2, f"{done.stdout}\n{done.stderr}"
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_run_of_one_process_sends_nothing() -> None:
    parameter = torch.nn.Parameter(torch.zeros(2))
    ALONE.add_gradients([parameter])
    ALONE.share([parameter])
    ALONE.wait()
    assert parameter.grad is None
    assert ALONE.sum({"b": 2.0, "a": 1.0}) == {"b": 2.0, "a": 1.0}
    assert ALONE.is_first
