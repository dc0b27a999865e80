"""Requests that come together are computed together, by one thread, in the order in which they came."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from tasks.io.records import Record

Answer = dict[str, Any]


@dataclass(frozen=True)
class LinkRequest:
    """Documents of one request, and whether their answers show all candidates."""

    records: Sequence[Record]
    candidates: bool = False


Check = Callable[[], None]
"""Raises: Gone where nobody waits any more for what is computed."""
Link = Callable[[LinkRequest, Check], list[Answer]]
"""An answer to each of the documents, with a check between its parts. Raises: whatever goes wrong with one of them."""
Asked = tuple[LinkRequest, Future[list[Answer]] | asyncio.Future[list[Answer]]]


class Gone(Exception):
    """Nobody waits any more for the answer to a request."""


class Batches:
    """Requests that wait to be linked; while some are computed, those that come are gathered."""

    def __init__(self, link: Link, most: int) -> None:
        """Compute with `link` so many documents at once, more only where a single request has them."""
        self.link, self.most = link, most
        self._waiting: asyncio.Queue[tuple[LinkRequest, asyncio.Future[list[Answer]]]] = asyncio.Queue()
        self._began: float | None = None  # of the batch that is computed

    def seconds(self) -> float:
        """The time for which the present batch has been computed; 0 where there is none."""
        return time.monotonic() - self._began if self._began is not None else 0.0

    async def ask(self, request: LinkRequest) -> list[Answer]:
        """The answers to a request. Raises: what `link` raises for it alone."""
        answers = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((request, answers))
        return await answers

    async def run(self) -> None:
        """Answers until it is cancelled."""
        thread = Thread()
        kept: list[tuple[LinkRequest, asyncio.Future[list[Answer]]]] = []
        try:
            while True:
                batch = [kept.pop() if kept else await self._waiting.get()]
                room = self.most - len(batch[0][0].records)
                while not self._waiting.empty() and not kept:
                    following = self._waiting.get_nowait()
                    room -= len(following[0].records)
                    (batch if room >= 0 else kept).append(following)
                self._began = time.monotonic()
                replies = await thread.run(partial(answers_of, self.link, batch))
                self._began = None
                for (_, answers), reply in zip(batch, replies, strict=True):
                    if answers.done():  # nobody waits any more
                        continue
                    if isinstance(reply, Exception):
                        answers.set_exception(reply)
                    else:
                        answers.set_result(reply)
        finally:
            thread.end()


class Thread:
    """A thread that calls one function after the other; unlike an executor's it lets the process end."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return the function's result; it may raise nothing."""
        result: Future[Any] = Future()
        self._calls.put((function, result))
        return await asyncio.wrap_future(result)

    def end(self) -> None:
        """End it after what it has to call."""
        self._calls.put(None)

    def _work(self) -> None:
        while call := self._calls.get():
            function, result = call
            if result.set_running_or_notify_cancel():
                result.set_result(function())


def answers_of(link: Link, asked: Sequence[Asked]) -> list[list[Answer] | Exception]:
    """The answers to each request; where all together cannot be answered, each is asked alone.

    So it is where one of them is not waited for any more: the others do not wait for what it takes.
    """
    requests = [request for request, _ in asked]
    records = [record for request in requests for record in request.records]

    def check() -> None:
        if any(answers.done() for _, answers in asked):
            raise Gone

    try:
        check()
        answers = iter(link(LinkRequest(records, any(each.candidates for each in requests)), check))
    except Exception as error:  # whatever one request does to the model, the others are answered
        if len(asked) > 1:
            return [reply for each in asked for reply in answers_of(link, [each])]
        return [error]
    return [[shown(next(answers), each.candidates) for _ in each.records] for each in requests]


def shown(answer: Answer, candidates: bool) -> Answer:
    """An answer without what was computed for other requests."""
    if candidates:
        return answer
    mentions = [
        {name: value for name, value in each.items() if name != "candidates"} for each in answer["mentions"]
    ]
    return {**answer, "mentions": mentions}
