"""How fast a table page_props is read, by our reader and by mwsql: `python -m benchmarks.corpus.page_props`.

The file is made here: of each two rows one is of the property that is wanted, as in the tables of large Wikipedias.
Each reader works in a process of its own, whose largest memory is told, and which counts the rows and sums their pages.
"""

import argparse
import gzip
import json
import multiprocessing
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator

from pipeline.dump.page_props import PageProps
from tests.support.page_props import Row, sql

ROWS = 4_000_000
_STATEMENT = 20_000  # rows


def write_table(path: str, rows: int) -> None:
    """A table of so many rows, gzip in as many members as there are statements."""
    with gzip.open(path, "wb", compresslevel=6) as stream:
        content = sql([[(0, "x", b"")]])
        head, tail = content.split(b"INSERT")[0], content.split(b";\n", content.count(b";\n") - 2)[-1]
        stream.write(head)
        for first in range(0, rows, _STATEMENT):
            statement = sql([list(_rows(first, min(rows, first + _STATEMENT)))])
            start = statement.index(b"INSERT")
            stream.write(statement[start : statement.index(b";\n", start) + 2])
        stream.write(tail)


def _rows(first: int, end: int) -> Iterator[Row]:
    for number in range(first, end):
        if number % 2:
            yield number // 2, "wikibase_item", b"Q%d" % (number * 7 + 1)
        else:
            yield number // 2, "defaultsort", b"O'Name, Somebody %d" % number


def ours(path: str) -> tuple[int, int]:
    """(rows of wikibase_item, the sum of their pages)"""
    count = total = 0
    with PageProps(path, "wikibase_item") as items:
        for page, _ in items:
            count += 1
            total += page
    return count, total


def mwsqls(path: str) -> tuple[int, int]:
    """The same by mwsql."""
    from mwsql import Dump

    count = total = 0
    for page, name, *_ in Dump.from_file(path):
        if name == "wikibase_item":
            count += 1
            total += int(page)
    return count, total


def measure(read: Callable[[str], tuple[int, int]], path: str) -> dict[str, float]:
    """Seconds and megabytes of a reader, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, (read, path))


def _measured(read: Callable[[str], tuple[int, int]], path: str) -> dict[str, float]:
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    count, total = read(path)
    seconds, after = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "cpu_seconds": round(seconds, 2),
        "rows": count,
        "sum": total,
        "MB_more": (after - before) // 1024,
    }


def main() -> None:
    """Command line: prints JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus.page_props", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "page_props.sql.gz")
        write_table(path, rows)
        found = {reader.__name__: measure(reader, path) for reader in (ours, mwsqls)}
        size = os.path.getsize(path)
    if len({(each["rows"], each["sum"]) for each in found.values()}) > 1:
        raise SystemExit(f"the readers differ: {found}")
    machine = f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    print(json.dumps({"rows": rows, "bytes": size, "machine": machine, **found}, indent=2))


if __name__ == "__main__":
    main()
