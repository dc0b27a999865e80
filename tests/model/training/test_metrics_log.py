"""The record of a run: lines, CSV, TensorBoard, and sums that survive a checkpoint."""

import csv
import json
from pathlib import Path

import pytest
import torch

from model.training.metrics_log import Record, StepMeans, find_tracker, last_figures, read_lines


def counts(correct: int, total: int) -> tuple[dict[str, torch.Tensor], dict[str, int]]:
    return (
        {"masked_word": torch.tensor(correct), "masked_entity": torch.tensor(1)},
        {"masked_word": total, "masked_entity": 2},
    )


NAMES = ("masked_word", "masked_entity")


def values(loss: float) -> dict[str, float]:
    return {"masked_word": loss, "masked_entity": 2 * loss, "gradient_norm": 3 * loss, "learning_rate": 0.5}


def feed(means: StepMeans, steps: range) -> None:
    for step in steps:
        means.count(*counts(step, 10))
        means.count(*counts(1, 10))
        means.add(values(step / 7))


def test_line_holds_means() -> None:
    means = StepMeans(NAMES)
    feed(means, range(3))
    assert means.line(2, 9, 0.25) == {
        "phase": 2,
        "step": 9,
        "learning_rate": 0.25,
        "gradient_norm": pytest.approx(3 / 7),
        "masked_word_loss": pytest.approx(1 / 7),
        "masked_word_accuracy": (0 + 1 + 2 + 3) / 60,
        "masked_entity_loss": pytest.approx(2 / 7),
        "masked_entity_accuracy": 0.5,
    }
    feed(means, range(1))
    assert means.line(2, 10, 0.25)["masked_word_accuracy"] == 1 / 20, "a line begins a new stretch"


@pytest.mark.parametrize("border", range(6))
def test_sums_survive_a_checkpoint_to_the_bit(border: int) -> None:
    whole, before, after = StepMeans(NAMES), StepMeans(NAMES), StepMeans(NAMES)
    feed(whole, range(6))
    feed(before, range(border))
    after.restore(json.loads(json.dumps(before.state())))
    feed(after, range(border, 6))
    assert after.line(1, 6, 0.1) == whole.line(1, 6, 0.1)


def test_what_no_process_predicted_is_in_no_line() -> None:
    means = StepMeans((*NAMES, "other"))
    feed(means, range(1))
    assert not any("other" in name for name in means.line(1, 1, 0.1))


def lines(count: int) -> list[dict[str, float]]:
    return [{"phase": 1, "step": 5 * step, "masked_word_loss": 1 / step} for step in range(1, count + 1)]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_record_has_the_same_in_every_file(tmp_path: Path) -> None:
    record = Record(tmp_path, 0)
    for line in lines(3):
        record.metrics(line)
    record.evaluation({"step": 10, "masked_word_loss": 0.25})
    record.speed({"step": 10, "words_per_second": 5.0})
    record.close()
    assert read_lines(tmp_path / "metrics.jsonl") == lines(3)
    assert [{name: float(value) for name, value in row.items()} for row in read_csv(tmp_path / "metrics.csv")] == lines(
        3
    )
    assert last_figures(tmp_path) == {**lines(3)[-1], "held_out_step": 10, "held_out_masked_word_loss": 0.25}
    (speed,) = read_lines(tmp_path / "log" / "speed.jsonl")
    assert set(speed) == {"time", "step", "words_per_second"}


def test_csv_takes_a_column_that_comes_later(tmp_path: Path) -> None:
    record = Record(tmp_path, 0)
    record.metrics(lines(1)[0])
    record.metrics(lines(2)[1] | {"masked_entity_loss": 4.0})
    record.metrics(lines(3)[2])
    rows = read_csv(tmp_path / "metrics.csv")
    assert [row["masked_entity_loss"] for row in rows] == ["", "4.0", ""]


def test_resumed_record_goes_on_where_the_checkpoint_stands(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
        record = Record(folder, 0)
        for line in lines(4):
            record.metrics(line)
            record.evaluation(line)
        record.close()
    with (broken / "metrics.jsonl").open("a") as file:
        file.write('{"phase": 1, "st')
    record = Record(broken, 12)
    assert read_lines(broken / "metrics.jsonl") == read_lines(broken / "evaluation.jsonl") == lines(2)
    assert len(read_csv(broken / "metrics.csv")) == 2
    for line in lines(4)[2:]:
        record.metrics(line)
        record.evaluation(line)
    record.close()
    for name in ("metrics.jsonl", "metrics.csv", "evaluation.jsonl"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


def test_a_run_from_the_beginning_leaves_nothing_of_another(tmp_path: Path) -> None:
    record = Record(tmp_path, 0)
    record.metrics(lines(1)[0])
    record.evaluation(lines(1)[0])
    record.close()
    Record(tmp_path, 0).close()
    assert not (tmp_path / "evaluation.jsonl").exists()
    assert (tmp_path / "metrics.jsonl").read_text() == (tmp_path / "metrics.csv").read_text() == ""


def test_a_tracker_gets_what_tensorboard_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "their_tracker.py").write_text(
        "seen = []\n"
        "def log(figures, step):\n"
        "    seen.append((step, figures))\n"
        "    if step == 10:\n"
        "        raise RuntimeError('no network')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    record = Record(tmp_path, 0, find_tracker("their_tracker:log"))
    for line in lines(3):
        record.metrics(line)
    record.evaluation({"step": 10, "known_entity_top_1": 0.5})
    record.speed({"step": 10, "device": "cpu", "words_per_second": 100.0})
    record.speed({"step": 0, "device": "cpu"})
    record.close()
    import their_tracker

    assert their_tracker.seen == [
        (5, {"training/masked_word_loss": 1.0}),
        (10, {"training/masked_word_loss": 0.5}),
        (15, {"training/masked_word_loss": 1 / 3}),
        (10, {"held_out/known_entity_top_1": 0.5}),
        (10, {"speed/words_per_second": 100.0}),
    ]
    assert caplog.messages == ["--tracker their_tracker:log: RuntimeError: no network; training goes on"]
    assert len(read_lines(tmp_path / "metrics.jsonl")) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wandb", "--tracker wandb: wanted module:function"),
        ("nowhere_at_all:log", "--tracker nowhere_at_all:log: cannot be imported .No module named"),
        ("json:nothing", "--tracker json:nothing: cannot be imported"),
        ("math:pi", "--tracker math:pi: is a float; wanted a function"),
    ],
)
def test_a_tracker_that_is_none_is_refused(name: str, message: str) -> None:
    assert find_tracker("") is None
    with pytest.raises(ValueError, match=message):
        find_tracker(name)


def test_tensorboard_shows_what_the_files_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.summary.writer import event_file_writer

    # Files of one second are read in the order of their numbers as text, in which 10 comes before 9.
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))
    record = Record(tmp_path, 0)
    for line in lines(4):
        record.metrics(line)
    record.close()
    record = Record(tmp_path, 10)
    record.metrics({"phase": 1, "step": 15, "masked_word_loss": 7.0})
    record.evaluation({"step": 15, "known_entity_top_1": 0.5})
    record.speed({"step": 15, "device": "cpu", "words_per_second": 100.0})
    record.close()
    events = EventAccumulator(str(tmp_path / "log"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {
        "training/masked_word_loss",
        "held_out/known_entity_top_1",
        "speed/words_per_second",
    }
    shown = [(event.step, event.value) for event in events.Scalars("training/masked_word_loss")]
    assert shown == [(5, 1.0), (10, 0.5), (15, 7.0)], "what the resumed run does again is purged"
