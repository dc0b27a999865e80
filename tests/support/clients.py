"""Clients of the service of linking, of every kind: honest, slow, gone and hostile; each counts what it gets."""

import asyncio
import itertools
import json
import random
import string
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]
Parts = Iterable[bytes]
LONGEST = 200  # seconds that a client waits for anything
PAUSE = 0.2  # seconds between two requests of a client
WAITING = "waiting"  # at the end
MOST_CHARACTERS = 1_000_000  # of a text


# What clients send


def post(body: bytes, *more: str) -> bytes:
    """Return a request to link."""
    lines = ("POST /link HTTP/1.1", "Host: localhost", *(more or [f"Content-Length: {len(body)}"]))
    return "\r\n".join((*lines, "", "")).encode() + body


def linked(text: str, spans: Iterable[tuple[int, int]] = (), *, candidates: bool = False) -> bytes:
    """Return a request to link a text, by the mentions that it brings or those that are found."""
    document: Record = {"text": text}
    if mentions := [{"start": start, "end": end} for start, end in spans]:
        document["mentions"] = mentions
    return post(json.dumps({"documents": [document], "candidates": candidates}).encode())


def bytewise(data: bytes, first: int) -> Parts:
    """Return the first bytes of a request together, and each of the others alone."""
    return (data[:first], *(data[at : at + 1] for at in range(first, len(data))))


def spans(count: int) -> list[tuple[int, int]]:
    """Return so many spans, no two of which are the same."""
    return [(at // 8, at // 8 + at % 8 + 1) for at in range(count)]


def words(chance: random.Random, count: int) -> str:
    """Return so many words that nobody has seen."""
    return " ".join("".join(chance.choices(string.ascii_letters, k=9)).title() for _ in range(count))


class Kind(NamedTuple):
    """Clients of a kind: how many, what each sends, with pauses between its parts, and what it may get.

    An answer is read after `reading` seconds, if at all.
    """

    clients: int
    parts: Callable[[str, random.Random], Parts]
    right: str
    pause: float = 0.0
    reading: float | None = 0.0


CHUNKS = b"1\r\n[\r\n" * 100_000 + b"0\r\n\r\n"
MANY_VALUES = b'{"documents": [{"text": "", "more": [' + b"{}," * 300_000 + b"0]}]}"
SLOW, BUSY = "408 503 closed reset", "200 413 503"
KINDS = {
    "slow body": Kind(40, lambda text, _: bytewise(linked(text[:200]), 150), SLOW, 1.0),
    "slow head": Kind(40, lambda text, _: bytewise(linked(text[:200]), 1), SLOW, 1.0),
    "silent": Kind(300, lambda text, _: [b""], SLOW),
    "slow reader": Kind(10, lambda text, _: [linked(text[:50_000], candidates=True)], f"200 {SLOW}", 0, 60),
    "gone": Kind(8, lambda text, _: [linked(text[:100_000])], "left", 0.05, None),
    "many spans": Kind(4, lambda text, _: [linked(text[:9000], spans(4000))], BUSY),
    "too many spans": Kind(2, lambda text, _: [linked(text[:9000], spans(20_000))], "413 503"),
    "long text": Kind(4, lambda text, _: [linked(text[:900_000], candidates=True)], BUSY),
    "one name": Kind(2, lambda text, _: [linked("United States " * 60_000, candidates=True)], BUSY),
    "huge body": Kind(4, lambda text, _: [post(bytes(1 << 23))], "413"),
    "small chunks": Kind(4, lambda text, _: [post(CHUNKS, "Transfer-Encoding: chunked")], "closed reset"),
    "deep JSON": Kind(4, lambda text, _: [post(b'{"documents": ' + b"[" * 500_000)], "400 503"),
    "many values": Kind(4, lambda text, _: [post(MANY_VALUES)], "200 503"),
    "new names": Kind(4, lambda text, chance: [linked(words(chance, 300), [(0, 2000)])], "200 503"),
    "long head": Kind(2, lambda text, _: [post(b"", f"X-Long: {'a' * 200_000}")], "400 closed reset"),
    "wrong length": Kind(2, lambda text, _: [post(b"", "Content-Length: -2")], "400"),
    "no HTTP": Kind(2, lambda text, chance: [chance.randbytes(5000) + b"\r\n\r\n"], "400 closed reset"),
}


# How they send it


async def send(port: int, parts: Parts, pause: float = 0.0, reading: float | None = 0.0) -> tuple[str, bytes]:
    """Return the status and the body that answer some parts.

    The status is "closed" or "reset" where the service ends the connection first, and "left" where nobody reads.
    """
    try:
        async with asyncio.timeout(LONGEST):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(pause)
                if reading is None:
                    return "left", b""
                await asyncio.sleep(reading)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                size = int(head.partition("content-length: ")[2].partition("\r")[0] or 0)
                return head.split()[1], await reader.readexactly(size)
            finally:
                writer.transport.abort()
    except TimeoutError:
        return "no answer", b""
    except asyncio.IncompleteReadError:
        return "closed", b""
    except OSError:
        return "reset", b""


def crowd(*, port: int, asked: str, seconds: float) -> Record:
    """Let clients of every kind ask for so many seconds: how often each kind got what, and how many wait at the end."""
    texts = [document["text"] for document, _ in read_pairs(asked)]
    text = "\n".join(itertools.islice(itertools.cycle(texts), MOST_CHARACTERS // min(map(len, texts))))
    counts: dict[str, Counter[str]] = {name: Counter() for name in KINDS}

    async def client(name: str, number: int) -> None:
        kind, chance = KINDS[name], random.Random(f"{name} {number}")
        await asyncio.sleep(chance.uniform(0, min(5, seconds / 4)))
        while True:
            status, _ = await send(port, kind.parts(text, chance), kind.pause, kind.reading)
            counts[name][status] += 1
            await asyncio.sleep(PAUSE)

    async def all_of_them() -> None:
        tasks = {asyncio.create_task(client(name, n)): name for name in KINDS for n in range(KINDS[name].clients)}
        _, pending = await asyncio.wait(tasks, timeout=seconds)
        for task in pending:
            task.cancel()
            counts[tasks[task]][WAITING] += 1

    asyncio.run(all_of_them())
    return {"statuses": counts}


def read_pairs(path: str) -> list[tuple[Record, list[Record]]]:
    """Return the documents that `answers` wrote, each with its mentions in the answer."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def honest(*, port: int, asked: str, clients: int, seconds: float = 1e9, requests: int = 1 << 60) -> Record:
    """Let clients ask what the linker has answered, for so many seconds or requests: waits, statuses, wrong answers.

    A client that gets 503 asks again after the second that the service tells it, and goes on waiting.
    """
    pairs, waits = read_pairs(asked), list[float]()
    statuses, wrong = Counter[str](), list[Record]()
    numbers, end = iter(range(requests)), time.monotonic() + seconds

    async def client() -> None:
        for number in numbers:
            document, wanted = pairs[number % len(pairs)]
            request, began, status = (post(json.dumps({"documents": [document]}).encode()), time.monotonic(), "")
            while status != "200" and time.monotonic() - began < LONGEST:
                status, body = await send(port, [request])
                statuses[status] += 1
                await asyncio.sleep(status != "200")
            waits.append(time.monotonic() - began)
            if status == "200" and json.loads(body)["documents"][0]["mentions"] != wanted:
                wrong.append(document)
            if time.monotonic() > end:
                break
            await asyncio.sleep(PAUSE if seconds < 1e9 else 0)

    async def all_of_them() -> None:
        await asyncio.gather(*(client() for _ in range(clients)))

    asyncio.run(all_of_them())
    return {"waits": waits, "statuses": statuses, "wrong": wrong}
