"""Requests that wait are computed by one thread, the shortest first, and together as long as they are short."""

import asyncio
import heapq
import itertools
import json
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from tasks.io.records import Record

Answer = dict[str, Any]


@dataclass(frozen=True)
class LinkRequest:
    """Documents of one request, whether their answers show all candidates, and what writes these, if not `reply_of`."""

    records: Sequence[Record]
    candidates: bool = False
    write: Callable[[Sequence[Answer]], bytes] | None = None


Read = Callable[[bytes], LinkRequest]  # the request of a body; raises an Exception for what is none
Check = Callable[[], None]  # raises Gone where nobody waits any more for what is computed
Link = Callable[[LinkRequest, Check], list[Answer]]
"""An answer to each of the documents, with a check between its parts. Raises: whatever goes wrong with one of them."""


class Asked(NamedTuple):
    """A body that waits for its reply, and what reads it."""

    body: bytes
    reply: Future[bytes] | asyncio.Future[bytes]
    read: Read


class Gone(Exception):
    """Nobody waits any more for the answer to a request."""


class Batches:
    """Requests that wait to be linked; while some are computed, those that come are gathered."""

    def __init__(self, link: Link, most: int) -> None:
        """Compute bodies of so many bytes at once, more only where a single one has them."""
        self.link, self.most = link, most
        self._waiting: list[tuple[int, int, Asked]] = []  # a heap: by length, and of equals by when they came
        self._numbers, self._come = itertools.count(), asyncio.Event()
        self._began: float | None = None  # of the batch that is computed

    def seconds(self) -> float:
        """The time for which the present batch has been computed; 0 where there is none."""
        return time.monotonic() - self._began if self._began is not None else 0.0

    async def ask(self, body: bytes, read: Read) -> bytes:
        """The reply to a request, which `read` reads. Raises: what is raised for it alone."""
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        entry = (len(body), next(self._numbers), Asked(body, reply, read))
        heapq.heappush(self._waiting, entry)
        self._come.set()
        try:
            return await reply
        finally:
            # Shorter ones may come for ever: a long body that nobody waits for would stay as long.
            if entry in self._waiting:
                self._waiting.remove(entry)
                heapq.heapify(self._waiting)

    async def run(self) -> None:
        """Answers until it is cancelled."""
        thread = Thread()
        try:
            while await self._come.wait():
                batch = self._batch()
                self._began = time.monotonic()
                replies = await thread.run(partial(answers_of, self.link, batch))
                self._began = None
                for asked, reply in zip(batch, replies, strict=True):
                    if asked.reply.done():  # nobody waits any more
                        continue
                    if isinstance(reply, Exception):
                        asked.reply.set_exception(reply)
                    else:
                        asked.reply.set_result(reply)
        finally:
            thread.end()

    def _batch(self) -> list[Asked]:
        """Take the shortest of those that wait; whose clients have gone are left out."""
        batch, room = list[Asked](), self.most
        while self._waiting and (not batch or self._waiting[0][0] <= room):
            size, _, asked = heapq.heappop(self._waiting)
            if not asked.reply.done():
                room -= size
                batch.append(asked)
        if not self._waiting:
            self._come.clear()
        return batch


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


def answers_of(link: Link, asked: Sequence[Asked]) -> list[bytes | Exception]:
    """The reply to each request; where all together cannot be answered, each is asked alone.

    So it is where one of them is not waited for any more: the others do not wait for what it takes.
    """

    def check() -> None:
        if any(each.reply.done() for each in asked):
            raise Gone

    try:
        requests = [each.read(each.body) for each in asked]
        check()
        records = [record for request in requests for record in request.records]
        candidates = any(each.candidates for each in requests)
        answers = iter(link(LinkRequest(records, candidates), check) if records else ())
        return [reply_of(each, [next(answers) for _ in each.records]) for each in requests]
    except Exception as error:  # whatever one request does to the model, the others are answered
        if len(asked) > 1:
            return [reply for each in asked for reply in answers_of(link, [each])]
        return [error]


def reply_of(request: LinkRequest, answers: Sequence[Answer]) -> bytes:
    """The documents of a request with their answers, without what was computed for other requests."""
    if request.write:
        return request.write(answers)
    for mention in itertools.chain.from_iterable(answer["mentions"] for answer in answers):
        if not request.candidates:
            mention.pop("candidates", None)
    documents = [{**each.values, **answer} for each, answer in zip(request.records, answers, strict=True)]
    return json.dumps({"documents": documents}, ensure_ascii=False, separators=(",", ":")).encode()
