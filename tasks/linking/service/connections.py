"""uvicorn, whose connections do not wait for slow clients without an end."""

import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

LOOKS = 5  # uvicorn's ticks, ten a second, from one look to the next
WORK, WORK_A_BYTE, PART = 0.1, 2e-7, 1 << 14  # seconds; bytes after which they are looked at


class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection; it ends where a request takes too much work to read, as a body in chunks of a byte does."""

    worked = 0.0

    def data_received(self, data: bytes) -> None:
        for part in (data[at : at + PART] for at in range(0, len(data), PART)):
            began, cycle = time.thread_time(), self.cycle
            super().data_received(part)
            worked = self.worked if self.cycle is cycle else 0.0
            self.worked = max(0.0, worked + time.thread_time() - began - WORK_A_BYTE * len(part))
            if self.worked > WORK:
                self.transport.abort()
                break


class Server(uvicorn.Server):
    """Ends connections whose clients let it wait for so many seconds; of more than `most` those that do longest."""

    def __init__(self, config: uvicorn.Config, seconds: float, most: int) -> None:
        super().__init__(config)
        self.seconds, self.most = seconds, most
        self._since: dict[tuple[Any, Any], float] = {}

    async def on_tick(self, counter: int) -> bool:
        if counter % LOOKS == 0:
            self.end_slow_ones(time.monotonic())
        return await super().on_tick(counter)

    def end_slow_ones(self, now: float) -> None:
        """Look which connections send their request, or read their answer; a connection may have one after another."""
        connections: set[Any] = {*self.server_state.connections}
        waiting = [
            (each, each.cycle)
            for each in connections
            if not each.cycle or each.cycle.response_started or each.flow.write_paused
        ]
        self._since = {each: self._since.get(each, now) for each in waiting}
        too_many = len(connections) - self.most
        for number, (each, since) in enumerate(sorted(self._since.items(), key=lambda item: item[1])):
            if number < too_many or now - since > self.seconds:
                each[0].transport.abort()
