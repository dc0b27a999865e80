"""What decides the meaning of the figures of `benchmarks/model.py`; nothing is measured here."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from model.luke.heads import LukeForPretraining
from tests.support.models import TINY, random_batch

# At the end: `model.py` there must not be taken for the package.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import processes

BENCHMARKS = Path(processes.__file__).parent


def load(name: str) -> ModuleType:
    """A script by its path: `model.py` has the name of the package."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script, workloads = load("model"), load("model_workloads")


def row(variant: str, number: int, seconds: float, **changes: float) -> dict[str, object]:
    cpu_seconds = 2 * seconds if variant.startswith("ours") else seconds
    sizes = {"words": 90, "entities": 10, "places": 120, "flops": 1e12, "cpu_seconds": cpu_seconds}
    return (
        sizes
        | {"variant": variant, "round": number, "dropout": 0.0, "seconds": seconds, "loss": 3.0}
        | changes
    )


ROWS = [
    *(row("transformers original padded", n, seconds) for n, seconds in enumerate((10.0, 20.0, 25.0))),
    *(row("ours original unpadded", n, seconds) for n, seconds in enumerate((8.0, 4.0, 5.0))),
]


def test_speeds_are_of_real_tokens_and_compared_by_fastest_and_median() -> None:
    theirs, ours = script.speed_rows(ROWS)
    assert (theirs["tokens/s, fastest"], theirs["tokens/s, median"]) == (10.0, 5.0)
    assert (ours["tokens/s, fastest"], ours["tokens/s, median"]) == (25.0, 20.0)
    assert ours["x transformers by CPU time, fastest"] == 1.25
    assert (ours["x transformers, fastest"], ours["x transformers, median"]) == (2.5, 4.0)


def test_targets_say_what_was_missed_and_what_was_not_measured() -> None:
    sizes = [
        {"variant": "transformers original padded", "dropout": 0.0, "loaded_mb": 100.0, "peak_mb": 400.0},
        {"variant": "ours original unpadded", "dropout": 0.0, "loaded_mb": 100.0, "peak_mb": 320.0},
        {"variant": "ours entity-aware unpadded", "dropout": 0.0, "failure": "signal 9"},
    ]
    report = {"device": "cpu", "speed": script.speed_rows(ROWS), "memory": script.memory_rows(sizes)}
    found = [(line["found"], line["met"]) for line in script.targets(report)]
    assert found == [(2.5, True), (0.8, False), (None, None)]


def test_targets_on_a_gpu() -> None:
    rows = [row("ours original unpadded", 0, 2.0), row("ours entity-aware unpadded", 0, 3.0)]
    report = {"device": "cuda", "rows": rows, "dropouts": [0.0], "product_flops": 1e12}
    ratio, share = script.targets(report)
    assert (ratio["found"], ratio["met"]) == (1.5, False)
    assert (share["found"], share["met"]) == (0.5, True)


def test_models_that_disagree_fail_the_check() -> None:
    assert all(line["passed"] for line in script.checks(ROWS))
    other = [*ROWS, row("ours original padded", 1, 5.0, loss=3.1)]
    assert [line["passed"] for line in script.checks(other)] == [True, False, True]


def test_operations_are_those_that_torch_counts() -> None:
    torch.manual_seed(0)
    module, batch = LukeForPretraining(TINY).train(), random_batch().unpadded()
    with FlopCounterMode(display=False) as counter:
        sum(module(batch).losses.values()).backward()
    assert workloads.flops(module, batch, "ours original unpadded") == counter.get_total_flops()


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_variants_share_weights_and_agree(dropout: float) -> None:
    names = workloads.variants(with_theirs=True)
    config = replace(TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    models, batch = workloads.same_weights(config, names, "cpu"), random_batch().unpadded()
    tables = {next(module.parameters()).data_ptr() for module, _ in models.values()}
    assert (len(models), len(tables)) == (6, 1)
    losses = {}
    for name, (module, step) in models.items():
        workloads.set_dropout(module, dropout)
        losses[name] = workloads.train_step(module, step, batch, "cpu", bf16=False)
        assert all(parameter.grad is None for parameter in module.parameters())
    for attention in workloads.ATTENTIONS:
        found = {round(loss, 4) for name, loss in losses.items() if f" {attention} " in name}
        assert (len(found) == 1) == (dropout == 0)


def test_the_script_is_no_package() -> None:
    found = processes.run(script.WORKLOADS, "memory", {"nothing": 1})
    assert "unexpected keyword argument 'nothing'" in found["failure"]
    assert sys.modules["model"].__file__ == str(BENCHMARKS.parent / "model" / "__init__.py")
