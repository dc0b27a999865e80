"""Progress for somebody at a terminal, and a check that a service answers."""

import contextlib
import functools
import socket
import sys
from collections.abc import Callable, Iterator

_CONNECT_SECONDS = 5


@contextlib.contextmanager
def progress_bar(name: str, *, unit: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar on a terminal, nothing elsewhere; gives a function of (done, total)."""
    from tqdm import tqdm

    with tqdm(desc=name, total=total, unit=unit, unit_scale=True, leave=False, disable=not sys.stderr.isatty()) as bar:

        def show(done: int, known_total: int | None = None) -> None:
            bar.total = known_total or bar.total
            bar.update(done - bar.n)

        yield show


@functools.cache
def check_reachable(parameter: str, *addresses: str) -> str:
    """Check once that one of a service's addresses answers; this machine's own on the way there.

    `parameter` is that of the user's command line, as "--spark-master spark://host:7077", for which Spark itself would
    look for a minute; an address is HOST:PORT. Raises: ValueError: none does.
    """
    problems = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), _CONNECT_SECONDS) as way:
                return str(way.getsockname()[0])
        except (OSError, ValueError, OverflowError) as error:
            problems.append(str(error))
    raise ValueError(f"{parameter}: nobody answers there ({problems[0]}); is the cluster running?")


def on_terminal() -> bool:
    """Return whether somebody watches: progress is shown on a terminal only."""
    return sys.stderr.isatty()
