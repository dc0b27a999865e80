"""What decides the meaning of the figures of `benchmarks.evidence.fine_tuning`, beside SciPy and by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import permutation_test

from benchmarks.evidence import fine_tuning as script
from benchmarks.harness import report
from benchmarks.tasks import splits
from model.files import CONFIG

FACTS = {"machine": {}, "versions": {}, "commit": "", "changed": False, "load before": 0.0}


def arms_of(folder: Path, models: int = 3) -> dict[str, list[Path]]:
    """Folders of words alone, whose entity table has the special rows, and of models with entities."""
    arms: dict[str, list[Path]] = {}
    for name, size in (("words", 3), ("words and entities", 100)):
        arms[name] = [folder / f"{name} {place}" for place in range(models)]
        for each in arms[name]:
            each.mkdir(parents=True)
            (each / CONFIG).write_text(json.dumps({"entity_vocab_size": size}))
    return arms


def test_cells_are_those_of_the_registration(tmp_path: Path) -> None:
    """Five seeds; three pretrainings for probe 3, and the first one for the others."""
    jobs = script.jobs_of(arms_of(tmp_path), script.PROBES)
    assert len({job.name for job in jobs}) == len(jobs) == 2 * 5 * (3 + 3 + 1 + 1 + 1)
    assert {(job.arm, job.variant) for job in jobs} == {("words", "roberta"), ("words and entities", "luke")}
    assert {job.probe.data for job in jobs} <= splits.DATA.keys()
    first = jobs[:6]
    assert {job.seed for job in first} == {1}
    assert [(job.arm, job.pretraining) for job in first[::3]] == [("words", 0), ("words and entities", 0)]


@pytest.mark.parametrize("shape", [(1, 5), (3, 5), (4, 5)])
def test_p_values_are_scipys(shape: tuple[int, int]) -> None:
    """All permutations up to 16 pairs, and as many as there are samples beyond."""
    generator = np.random.default_rng(sum(shape))
    values = generator.normal(0.5, 1, size=shape).round(2)
    wanted = permutation_test(
        (values.ravel(), np.zeros(values.size)),
        lambda first, second, axis: (first - second).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=1 << 17 if values.size < 17 else 20_000,
        rng=np.random.default_rng(1),
    ).pvalue
    assert script.p_value(values) == pytest.approx(wanted, abs=1e-9 if values.size < 17 else 0.02)


def test_holm_by_hand() -> None:
    """The smallest times 3, the next times 2, and none is below one before it."""
    assert script.holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert script.holm([0.9, 0.6]) == [1.0, 1.0]


def test_an_interval_is_of_pretrainings_and_of_seeds_within_them() -> None:
    """Where seeds agree it is as wide as that of the pretrainings alone."""
    generator = np.random.default_rng(0)
    models = generator.normal(size=(8, 1))
    low, high = script.interval(np.repeat(models, 5, axis=1))
    drawn = models[generator.integers(8, size=(20_000, 8)), 0].mean(axis=1)
    assert (low, high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), abs=0.05)
    assert script.interval(np.ones((3, 5))) == (1.0, 1.0)


def record(arm: str, data: str, pretraining: int, seed: int, score: float) -> dict[str, Any]:
    """A cell that is done."""
    return {
        "name": f"{arm} {data} {pretraining} {seed}", "arm": arm, "data": data, "pretraining": pretraining,
        "seed": seed, "metrics": {"test": {"f1": score, "semeval_macro_f1": score / 2}},
    }  # fmt: skip


def test_arms_are_compared_where_all_their_cells_are_done() -> None:
    scores = np.random.default_rng(3).random((2, 2, 5))
    records = [
        record(arm, data, pretraining, seed, scores[place, pretraining, seed - 1])
        for place, arm in enumerate("ab")
        for data in ("wiki80-0.01", "semeval2010-task8")
        for pretraining in range(2)
        for seed in script.SEEDS
    ]
    rows, differences = script.tables(records, ["a", "b"])
    assert [(row["data"], row["arm"]) for row in rows] == [
        (data, arm) for data in ("wiki80-0.01", "semeval2010-task8") for arm in "ab"
    ]
    assert rows[0]["mean"] == pytest.approx(100 * scores[0].mean())
    assert rows[0]["best"] == pytest.approx(100 * scores[0].max())
    assert rows[3]["mean"] == pytest.approx(50 * scores[1].mean()), "of SemEval its own score"
    assert differences[0]["mean"] == pytest.approx(100 * (scores[1] - scores[0]).mean())
    assert [line["p by Holm"] for line in differences] == [None, None], "three more are to come"
    rows, differences = script.tables(records[:-1], ["a", "b"])
    assert len(rows) == 3, "a cell is missing"
    assert len(differences) == 1


def test_values_are_corrected_for_all_probes() -> None:
    generator = np.random.default_rng(5)
    records = [
        record(arm, probe.data, 0, seed, generator.random() + (arm == "b"))
        for arm in "ab"
        for probe in script.PROBES
        for seed in script.SEEDS
    ]
    _, differences = script.tables(records, ["a", "b"])
    assert len(differences) == 5
    assert [line["p"] for line in differences] == [2 / 2**5] * 5, "the least that five pairs can say"
    assert [line["p by Holm"] for line in differences] == pytest.approx([5 * 2 / 2**5] * 5)


def test_a_table_goes_on_and_tries_again_what_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def run(module: str, workload: str, given: dict[str, Any], threads: int) -> dict[str, Any]:
        assert (module, workload, threads) == ("tasks.splits", "fine_tune", 1)
        asked.append(given)
        if len(asked) == 2:
            return {"failure": "exit status 1: x"}
        return {"metrics": {"test": {"f1": 0.5}}, "cpu_seconds": 60.0}

    monkeypatch.setattr(script, "run", run)
    monkeypatch.setattr(report, "environment_facts", lambda *given: FACTS)
    arms = arms_of(tmp_path / "models", models=1)
    given = ["--weights", str(tmp_path), "--output", str(tmp_path / "found.json"), "--jobs", "1"]
    for name, folders in arms.items():
        given += ["--arm", name, *map(str, folders)]
    given += ["--data", "wiki80-0.01"]
    script.main(given)
    assert len(asked) == 10
    assert {each["cell"]["changes"]["epochs"] for each in asked} == {15}
    assert {(each["pretrained"], each["cell"]["variant"]) for each in asked} == {
        (str(arms["words"][0]), "roberta"),
        (str(arms["words and entities"][0]), "luke"),
    }
    found = json.loads((tmp_path / "found.json").read_text())
    assert [each["failure"] for each in found["failures"]] == ["exit status 1: x"]
    script.main(given)
    assert len(asked) == 11
    found = json.loads((tmp_path / "found.json").read_text())
    assert {each["commit"] for each in found["cells"]} == {script.commit()}
    assert [row["mean"] for row in found["scores"]] == [50.0, 50.0]
    assert [row["mean"] for row in found["differences"]] == [0.0]
