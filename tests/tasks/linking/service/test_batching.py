"""What comes together is computed together, and nobody pays for another's mistake."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import Future

import pytest

from tasks.io.records import Record
from tasks.linking.service.batching import Answer, Batches, Check, Gone, LinkRequest, answers_of
from tests.support import ROOT


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
        more = {"candidates": []} if request.candidates else {}
        return [{"mentions": [{"mention": text, **more}]} for text in texts]


def request(*texts: str, candidates: bool = False) -> LinkRequest:
    return LinkRequest([Record("request", {"text": text}) for text in texts], candidates)


def ask(linker: Linker, most: int, *requests: LinkRequest) -> list[object]:
    """The answers to requests, of which all but the first come while the first is computed."""

    async def run() -> list[object]:
        batches = Batches(linker, most)
        running = asyncio.create_task(batches.run())
        first = asyncio.create_task(batches.ask(requests[0]))
        while not linker.asked:
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batches.ask(each)) for each in requests[1:]]
        await asyncio.sleep(0)
        linker.goes.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        running.cancel()
        return answers

    return asyncio.run(run())


def mentions(answers: object) -> list[str]:
    assert isinstance(answers, list)
    return [each["mention"] for answer in answers for each in answer["mentions"]]


def test_what_came_in_the_meantime_is_computed_together() -> None:
    linker = Linker()
    answers = ask(linker, 4, request("a"), request("b", "c"), request("d"), request("e", "f"), request("g"))
    assert linker.asked == [["a"], ["b", "c", "d"], ["e", "f", "g"]]
    assert [mentions(each) for each in answers] == [["a"], ["b", "c"], ["d"], ["e", "f"], ["g"]]


def test_a_question_that_is_more_than_a_batch_is_answered_alone() -> None:
    linker = Linker()
    answers = ask(linker, 2, request("a"), request(*"bcd"), request("e"))
    assert linker.asked == [["a"], ["b", "c", "d"], ["e"]]
    assert mentions(answers[1]) == ["b", "c", "d"]


def test_a_mistake_is_its_own_questions_alone() -> None:
    linker = Linker()
    first, second, third, fourth = ask(linker, 8, request("a"), request("b"), request("bad"), request("c"))
    assert [mentions(each) for each in (first, second, fourth)] == [["a"], ["b"], ["c"]]
    assert isinstance(third, KeyError)


def test_candidates_are_shown_to_who_asked_for_them() -> None:
    linker = Linker()
    linker.goes.set()
    asked = [(each, Future[list[Answer]]()) for each in (request("a", candidates=True), request("b"))]
    shown, bare = answers_of(linker, asked)
    assert shown == [{"mentions": [{"mention": "a", "candidates": []}]}]
    assert bare == [{"mentions": [{"mention": "b"}]}]
    assert linker.asked == [["a", "b"]]


def test_what_nobody_waits_for_ends_between_its_parts() -> None:
    """The others of its batch begin again without it."""
    linker = Linker()
    linker.goes.set()
    asked = [(request(text), Future[list[Answer]]()) for text in "abc"]

    def link(together: LinkRequest, check: Check) -> list[Answer]:
        asked[1][1].cancel()
        return linker(together, check)

    first, gone, third = answers_of(link, asked)
    assert (mentions(first), mentions(third)) == (["a"], ["c"])
    assert isinstance(gone, Gone)
    assert linker.asked == [["a", "b", "c"], ["a"], ["c"]]


def test_who_waits_no_more_holds_nobody_up() -> None:
    linker = Linker()

    async def run() -> list[Answer]:
        batches = Batches(linker, 4)
        running = asyncio.create_task(batches.run())
        gone = asyncio.create_task(batches.ask(request("a")))
        while not linker.asked:
            await asyncio.sleep(0.001)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        linker.goes.set()
        answers = await batches.ask(request("b"))
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
