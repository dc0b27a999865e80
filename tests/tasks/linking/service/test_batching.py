"""Requests that come together are computed together, and nobody pays for another's mistake."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from tasks.io.records import Record
from tasks.linking.service.batching import Answer, Asked, Batches, Check, Gone, LinkRequest, answers_of
from tests.support import ROOT

SIZE = len(b'{"texts": ["a"], "candidates": false}')  # of the shortest request


class Linker:
    """Links nothing, says of what it was asked, and waits to be let go."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.goes = threading.Event()

    def __call__(self, request: LinkRequest, check: Check) -> list[Answer]:
        texts = [record.text("text") for record in request.records]
        self.asked.append(texts)
        self.goes.wait(10)
        check()
        if "bad" in texts:
            raise KeyError("bad")
        more: Answer = {"candidates": []} if request.candidates else {}
        return [{"mentions": [{"mention": text, **more}]} for text in texts]


def request(*texts: str, candidates: bool = False) -> bytes:
    return json.dumps({"texts": texts, "candidates": candidates}).encode()


def read(body: bytes) -> LinkRequest:
    found = json.loads(body)
    return LinkRequest([Record("request", {"text": text}) for text in found["texts"]], found["candidates"])


def ask(linker: Linker, most: int, *requests: bytes) -> Sequence[object]:
    """The replies to requests, of which all but the first come while the first is computed."""

    async def run() -> Sequence[object]:
        batches = Batches(linker, most)
        running = asyncio.create_task(batches.run())
        first = asyncio.create_task(batches.ask(requests[0], read))
        while not linker.asked:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batches.ask(each, read)) for each in requests[1:]]
        await asyncio.sleep(0)
        linker.goes.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        running.cancel()
        return answers

    return asyncio.run(run())


def mentions(reply: object) -> list[str]:
    assert isinstance(reply, bytes)
    return [each["mention"] for document in json.loads(reply)["documents"] for each in document["mentions"]]


def test_a_request_that_nobody_waits_for_is_not_kept() -> None:
    """However long shorter ones go on to come before it."""

    async def run() -> list[int]:
        batches = Batches(Linker(), SIZE)
        asked = [asyncio.create_task(batches.ask(request("a" * size), read)) for size in (5, 900, 30)]
        await asyncio.sleep(0)
        asked[1].cancel()
        await asyncio.wait([asked[1]])
        return sorted(size for size, _, _ in batches._waiting)

    assert asyncio.run(run()) == [SIZE + 4, SIZE + 29]


def test_what_came_in_the_meantime_is_computed_together() -> None:
    """As many as have so many bytes, in the order in which they came where they are as long."""
    linker = Linker()
    answers = ask(linker, 3 * SIZE, *map(request, "abcdefgh"))
    assert linker.asked == [["a"], ["b", "c", "d"], ["e", "f", "g"], ["h"]]
    assert [mentions(each) for each in answers] == [[each] for each in "abcdefgh"]


def test_the_shortest_are_computed_first_and_a_long_one_alone() -> None:
    linker = Linker()
    answers = ask(linker, 2 * SIZE, *map(request, ("a", "b" * SIZE, "c" * 3, "d" * 2, "e")))
    assert linker.asked == [["a"], ["e"], ["dd"], ["ccc"], ["b" * SIZE]]
    assert mentions(answers[1]) == ["b" * SIZE]


def test_a_mistake_is_its_own_requests_alone() -> None:
    """The mistake is in the request, or in what the linker makes of it."""
    linker = Linker()
    first, second, bad, none, last = ask(linker, 9 * SIZE, *map(request, ("a", "b", "bad")), b"[", request("c"))
    assert [mentions(each) for each in (first, second, last)] == [["a"], ["b"], ["c"]]
    assert isinstance(bad, KeyError)
    assert isinstance(none, json.JSONDecodeError)


def test_candidates_are_shown_to_who_asked_for_them() -> None:
    linker = Linker()
    linker.goes.set()
    asked = [Asked(each, Future[bytes](), read) for each in (request("a", candidates=True), request("b"))]
    shown, bare = answers_of(linker, asked)
    assert isinstance(shown, bytes)
    assert isinstance(bare, bytes)
    assert json.loads(shown) == {"documents": [{"text": "a", "mentions": [{"mention": "a", "candidates": []}]}]}
    assert json.loads(bare) == {"documents": [{"text": "b", "mentions": [{"mention": "b"}]}]}
    assert linker.asked == [["a", "b"]]


def test_what_nobody_waits_for_ends_between_its_parts() -> None:
    """The others of its batch begin again without it."""
    linker = Linker()
    linker.goes.set()
    asked = [Asked(request(text), Future[bytes](), read) for text in "abc"]

    def link(together: LinkRequest, check: Check) -> list[Answer]:
        asked[1].reply.cancel()
        return linker(together, check)

    first, gone, third = answers_of(link, asked)
    assert (mentions(first), mentions(third)) == (["a"], ["c"])
    assert isinstance(gone, Gone)
    assert linker.asked == [["a", "b", "c"], ["a"], ["c"]]


def test_who_waits_no_more_holds_nobody_up() -> None:
    linker = Linker()

    async def run() -> bytes:
        batches = Batches(linker, 4)
        running = asyncio.create_task(batches.run())
        gone = asyncio.create_task(batches.ask(request("a"), read))
        while not linker.asked:
            await asyncio.sleep(0.001)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        linker.goes.set()
        answers = await batches.ask(request("b"), read)
        running.cancel()
        return answers

    assert mentions(asyncio.run(run())) == ["b"]


def test_a_process_ends_though_something_is_computed() -> None:
    """An executor's thread would be waited for."""
    program = """
import asyncio, time
from tasks.linking.service.batching import Thread
async def main():
    task = asyncio.create_task(Thread().run(lambda: time.sleep(120)))
    await asyncio.sleep(0.2)
    task.cancel()
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=60, check=True)
