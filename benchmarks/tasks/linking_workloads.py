"""What `linking.py` measures inside of processes of their own. Each imports no more than its work needs."""

import contextlib
import json
import tempfile
from collections.abc import Sequence
from typing import IO

from benchmarks.harness.workloads import Record, kernel_size, serve, timed


def link(*, arguments: Sequence[str], rounds: int, threads: int) -> Record:
    """Run the command `link` so many times: mentions, seconds from the opening of the table on, the largest size."""
    from tasks.linking.__main__ import main

    if "--model" in arguments:
        import torch

        torch.set_num_threads(threads)
    rows = []
    for number in range(rounds):
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            with contextlib.redirect_stdout(output):
                _, clock = timed(lambda: main(["link", *arguments]))
            rows.append({"round": number, "mentions": count_mentions(output), **clock})
    return {"rows": rows, "largest MB": kernel_size("VmHWM")}


def count_mentions(answers: IO[str]) -> int:
    """Return how many mentions have a page in what `link` has written."""
    answers.seek(0)
    return sum(each["title"] is not None for line in answers for each in json.loads(line)["mentions"])


if __name__ == "__main__":
    serve(link)
