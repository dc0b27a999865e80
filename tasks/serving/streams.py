"""Answers to a stream of lines: each batch is answered when it is there, and a bad line costs no other its answer."""

import json
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from tasks.io.records import Record, parse_line

logger = logging.getLogger(__name__)

Answer = dict[str, Any]
Ask = Callable[[Sequence[Record]], list[Answer]]
ON_ERROR = ("report", "skip", "stop")
AT_ONCE = 256  # lines
WAIT = 0.05  # seconds that a line waits for others to be answered with


@dataclass(frozen=True)
class Reply:
    """What is said of a line, counted from 1: the record with its answer or, with `error`, what is wrong with it."""

    line: int
    values: Answer
    error: str = ""


def lines_of(stream: Any) -> Iterator[bytes]:
    """The lines of a binary stream, without their ends, as they come.

    Give it a raw one: a thread that waits inside a buffered one keeps Python from ending.
    """
    parts: list[bytes] = []
    while chunk := stream.read(1 << 16):
        first, *others = chunk.split(b"\n")
        parts.append(first)
        if others:
            yield b"".join(parts)
            yield from others[:-1]
            parts = [others[-1]]
    if any(parts):
        yield b"".join(parts)


def batches(
    lines: Iterable[bytes], size: int = AT_ONCE, wait: float = WAIT
) -> Iterator[list[tuple[int, bytes]]]:
    """Lines with their numbers, counted from 1: those that came within `wait` seconds of the first, at most `size`.

    A thread reads ahead of the caller, by `size` lines at most. Raises: what reading raised, after all lines before it.
    """
    waiting: queue.Queue[tuple[int, bytes] | BaseException | None] = queue.Queue(size)

    def read() -> None:
        try:
            for numbered in enumerate(lines, start=1):
                waiting.put(numbered)
            waiting.put(None)
        except Exception as error:  # it is raised where the lines are used
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        found = waiting.get()
        batch: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + wait
        while isinstance(found, tuple):
            batch.append(found)
            if len(batch) == size:
                break
            try:
                found = waiting.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
        if batch:
            yield batch
        if isinstance(found, BaseException):
            raise found
        if found is None:
            return


def replies(ask: Ask, batch: Sequence[tuple[int, bytes]], source: str) -> list[Reply]:
    """A reply to each line of a batch that is not blank, in order; `source` is named in errors."""
    found: dict[int, Reply] = {}
    records: list[tuple[int, Record]] = []
    for number, line in batch:
        try:
            text = decoded(line, f"{source}:{number}", is_first=number == 1)
            if text.strip():
                records.append((number, parse_line(f"{source}:{number}", text)))
        except ValueError as error:
            found[number] = Reply(number, {}, str(error))
    found |= {reply.line: reply for reply in answered(ask, records)}
    return [found[number] for number in sorted(found)]


def decoded(line: bytes, where: str, *, is_first: bool) -> str:
    """The text of a line; the first one may begin with a byte order mark. Raises: ValueError naming the byte."""
    try:
        return line.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: byte {error.start} is not UTF-8; convert the input to UTF-8") from None


def answered(ask: Ask, records: Sequence[tuple[int, Record]]) -> list[Reply]:
    """A reply to each record; where all together cannot be answered, each is asked alone."""
    if not records:
        return []
    try:
        answers = ask([record for _, record in records])
    except Exception as error:  # whatever one record does to the model, the others are answered
        if len(records) > 1:
            return [reply for each in records for reply in answered(ask, [each])]
        [(number, record)] = records
        return [Reply(number, {}, told(error, record.where))]
    return [
        Reply(number, {**record.values, **answer})
        for (number, record), answer in zip(records, answers, strict=True)
    ]


def told(error: Exception, where: str) -> str:
    """What is wrong, and where; what no one foresaw is logged whole, once for each kind."""
    if isinstance(error, ValueError):
        text = str(error)
        return text if text.startswith(where) else f"{where}: {text}"
    logger.debug("%s", where, exc_info=error)
    return f"{where}: {type(error).__name__}: {error}"


def answer_stream(
    ask: Ask, lines: Iterable[bytes], output: TextIO, *, source: str = "stdin", on_error: str = "report"
) -> Counter[str]:
    """Writes a line of JSON for each line, flushed batch by batch, and returns the errors' reasons with their counts.

    A line that cannot be answered becomes {"error", "line"} with `report`, and nothing with `skip`. Raises: ValueError
    for the first such line with `stop`, after all answers before it.
    """
    errors: Counter[str] = Counter()
    for batch in batches(lines):
        for reply in replies(ask, batch, source):
            if reply.error:
                errors[reply.error.removeprefix(f"{source}:{reply.line}: ")] += 1
            if reply.error and on_error == "stop":
                output.flush()
                raise ValueError(reply.error)
            if not reply.error or on_error == "report":
                values = {"error": reply.error, "line": reply.line} if reply.error else reply.values
                output.write(json.dumps(values, ensure_ascii=False) + "\n")
        output.flush()
    return errors
