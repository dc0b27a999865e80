"""What a user watches of a run: its record, held-out figures where they are due, speed and time left."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from model.evaluation import Schedule, evaluate
from model.heads import LukeForPretraining
from model.held_out import HeldOut
from model.record import Line, Record
from model.speed import Meter, describe_device, peak_memory, progress_text


@dataclass(frozen=True)
class Watched:
    """What goes beside the training of one run; of several processes the first alone has a record and evaluates."""

    held_out: HeldOut
    schedule: Schedule
    record: Record | None
    meter: Meter

    def begin(self, step: int, device: torch.device) -> None:
        """Record where the run goes on, and on what."""
        if not self.record:
            return
        machine = {"device": describe_device(device), "torch": torch.__version__}
        self.record.speed({"step": step, **machine, "matrix_flops_per_second": self.meter.peak})

    def log(self, line: Line, device: torch.device) -> None:
        """Record the means of a stretch of steps, and its speed."""
        if not self.record:
            return
        self.record.metrics(line)
        memory = {"memory_bytes": peak_memory(device)}
        self.record.speed({"step": line["step"]} | self.meter.figures() | memory)

    def evaluate(self, module: LukeForPretraining, step: int, batch_size: int) -> None:
        """Record held-out figures where they are due after `step` finished steps."""
        if self.record and self.schedule.is_due(step):
            with self.meter.aside("evaluation"):
                count = self.schedule.sequences(step)
                figures = evaluate(module, self.held_out, sequences=count, batch_size=batch_size)
                self.record.evaluation({"step": step} | figures)

    def text(self, losses: Mapping[str, float], step: int) -> str:
        """What stands beside the progress bar."""
        return progress_text(
            losses, self.meter.figures(), self.meter.seconds_left(self.schedule.steps - step)
        )
