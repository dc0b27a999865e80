"""Answers to lines or files: each batch is answered when it is there, and a bad one costs no other its answer."""

import codecs
import logging
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from tasks.io.records import GZIP, Errors, Record, parse_line
from tasks.serving.formats import JSON_LINES, Format

logger = logging.getLogger(__name__)

Answer = dict[str, Any]
Ask = Callable[[Sequence[Record]], list[Answer]]
Parse = Callable[[str, str], Record]
"""From the place of a text, and the text, to the input that is asked. Raises: ValueError naming the place."""
ON_ERROR = ("report", "skip", "stop")
AT_ONCE = 256  # lines
BYTES_AT_ONCE = 1 << 16  # of lines, so that long ones are not all answered before the first is written
WAIT = 0.05  # seconds that a line waits for others to be answered with


def report_errors(errors: Errors, on_error: str) -> int:
    """The status of the command; what was skipped is told on stderr."""
    if on_error != "skip":
        return 1 if errors else 0
    report_left_out(errors.lines())
    return 0


def report_left_out(lines: Iterable[str]) -> None:
    """Say on stderr what is left out."""
    for line in lines:
        print(f"left out: {line}", file=sys.stderr)


@dataclass(frozen=True)
class Given:
    """A line or a file: `where` names it in errors, `place` in what is written; its content, or where that is read."""

    where: str
    place: Mapping[str, Any]
    content: bytes | Path

    def text(self) -> str:
        """Return its text; a file may begin with a byte order mark. Raises: ValueError naming it, and what is wrong."""
        try:
            if isinstance(self.content, Path):
                return self.content.read_bytes().removeprefix(codecs.BOM_UTF8).decode()
            return self.content.decode()
        except UnicodeDecodeError as error:
            if error.object.startswith(GZIP):
                raise ValueError(f"{self.where}: packed (gzip); unpack it") from None
            raise ValueError(f"{self.where}: byte {error.start} is not UTF-8; convert the input") from None
        except OSError as error:
            raise ValueError(f"{self.where}: {error.strerror}; wanted a text file") from None


@dataclass(frozen=True)
class Reply:
    """The reply to a line or a file: the record with its answer or, with `error`, what is wrong with it."""

    given: Given
    values: Answer = field(default_factory=dict)
    error: str = ""


def numbered(lines: Iterable[bytes], source: str = "stdin") -> Iterator[Given]:
    """Lines with their numbers, counted from 1; the first may begin with a byte order mark, and any end with \\r."""
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        yield Given(f"{source}:{number}", {"line": number}, content.removesuffix(b"\r"))


def files(paths: Iterable[Path]) -> Iterator[Given]:
    """Files, each of which is asked about as a whole."""
    return (Given(str(path), {"file": str(path)}, path) for path in paths)


def lines_of(stream: Any) -> Iterator[bytes]:
    """The lines of a binary stream, without their ends, as they come."""
    stream = getattr(stream, "raw", stream)  # a thread that waits inside a buffered one keeps Python from ending
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


def batches(given: Iterable[Given], size: int = AT_ONCE, wait: float = WAIT) -> Iterator[list[Given]]:
    """Yield what came within `wait` seconds of the first: at most `size`, and no more once lines have BYTES_AT_ONCE.

    A thread reads ahead of the caller, by `size` at most. Raises: what reading raised, after all before it.
    """
    waiting: queue.Queue[Given | BaseException | None] = queue.Queue(size)

    def read() -> None:
        try:
            for each in given:
                waiting.put(each)
            waiting.put(None)
        except Exception as error:  # it is raised where the lines are used
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        found = waiting.get()
        batch: list[Given] = []
        room = BYTES_AT_ONCE
        deadline = time.monotonic() + wait
        while isinstance(found, Given):
            batch.append(found)
            room -= len(found.content) if isinstance(found.content, bytes) else 0
            if len(batch) == size or room <= 0:
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


def replies(ask: Ask, batch: Sequence[Given], parse: Parse = parse_line) -> list[Reply]:
    """A reply to each file and to each line that is not blank, in order."""
    found: dict[int, Reply] = {}
    asked: list[tuple[int, Record]] = []
    for number, given in enumerate(batch):
        try:
            text = given.text()
            if text.strip() or isinstance(given.content, Path):
                asked.append((number, parse(given.where, text)))
        except Exception as error:  # whatever one text does to a splitter, the others are answered
            found[number] = Reply(given, error=message_of(error, given.where))
    for number, answer in answered(ask, asked):
        found[number] = Reply(batch[number], error=answer) if isinstance(answer, str) else Reply(batch[number], answer)
    return [found[number] for number in sorted(found)]


def answered(ask: Ask, asked: Sequence[tuple[int, Record]]) -> list[tuple[int, Answer | str]]:
    """Each record with its answer, or what is wrong; where all together cannot be answered, each is asked alone."""
    if not asked:
        return []
    try:
        answers = ask([record for _, record in asked])
    except Exception as error:  # whatever one record does to the model, the others are answered
        if len(asked) > 1:
            return [reply for each in asked for reply in answered(ask, [each])]
        [(number, record)] = asked
        return [(number, message_of(error, record.where))]
    return [(number, {**record.values, **answer}) for (number, record), answer in zip(asked, answers, strict=True)]


def message_of(error: Exception, where: str) -> str:
    """Return what is wrong, and where; what no one foresaw is logged whole, once for each kind."""
    if isinstance(error, ValueError):
        text = str(error)
        return text if text.startswith(where) else f"{where}: {text}"
    logger.debug("%s", where, exc_info=error)
    return f"{where}: {type(error).__name__}: {error}"


def answer_stream(
    ask: Ask,
    given: Iterable[Given],
    output: TextIO,
    *,
    parse: Parse = parse_line,
    form: Format = JSON_LINES,
    on_error: str = "report",
    size: int = AT_ONCE,
) -> Errors:
    """Writes what `form` makes of each answer, flushed batch by batch, and returns the errors' reasons, counted.

    With `report` an error is written in the answer's place, as `form` writes it; where that does not say what is wrong,
    stderr does. `skip` leaves it out. Raises: ValueError for the first one with `stop`, after all answers before it.
    """
    errors = Errors()
    output.write(form.begin)
    output.flush()
    try:
        for batch in batches(given, size):
            for reply in replies(ask, batch, parse):
                text, error = written(form, reply)
                if error and on_error == "stop":
                    raise ValueError(error)
                if error:
                    errors.note(error.removeprefix(f"{reply.given.where}: "), reply.given.where)
                if error and on_error == "report" and not form.says_errors:
                    print(f"error: {error}", file=sys.stderr)
                if not error or on_error == "report":
                    output.write(text)
            output.flush()
    finally:
        output.write(form.end)
        output.flush()
    return errors


def written(form: Format, reply: Reply) -> tuple[str, str]:
    """Return what is written of a reply, and what is wrong with it: some answers cannot be written in every format."""
    error = reply.error
    if not error:
        try:
            return form.answer(reply.given.place, reply.values), ""
        except ValueError as wrong:
            error = message_of(wrong, reply.given.where)
    return form.error(reply.given.place, error), error
