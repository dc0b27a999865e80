"""Requests that come together are computed together, by one thread, in the order in which they came."""

import asyncio
import queue
import threading
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


Link = Callable[[LinkRequest], list[Answer]]
"""An answer to each of the documents. Raises: whatever goes wrong with one of them."""


class Batches:
    """Requests that wait to be linked: those that come while others are computed are gathered."""

    def __init__(self, link: Link, most: int) -> None:
        """Compute with `link` so many documents at once, more only where a single request has them."""
        self.link, self.most = link, most
        self._waiting: asyncio.Queue[tuple[LinkRequest, asyncio.Future[list[Answer]]]] = asyncio.Queue()

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
                requests = [request for request, _ in batch]
                replies = await thread.run(partial(answers_of, self.link, requests))
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
        """Return what the function returns; it may raise nothing."""
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


def answers_of(link: Link, requests: Sequence[LinkRequest]) -> list[list[Answer] | Exception]:
    """Return what is answered to each request; where all together cannot be answered, each is asked alone."""
    records = [record for request in requests for record in request.records]
    try:
        answers = iter(link(LinkRequest(records, any(each.candidates for each in requests))))
    except Exception as error:  # whatever one request does to the model, the others are answered
        if len(requests) > 1:
            return [reply for each in requests for reply in answers_of(link, [each])]
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
