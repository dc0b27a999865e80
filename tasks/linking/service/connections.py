"""uvicorn, whose connections do not wait for slow clients without an end."""

import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

MOST_AT_ONCE = 1 << 14  # bytes that are read of a connection before the others have their turn
LOOKS = 5  # uvicorn's ticks, ten a second, from one look to the next


class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection; small chunks of a body take time, so that few are read at once."""

    def connection_made(self, transport: Any) -> None:
        transport.max_size = MOST_AT_ONCE
        super().connection_made(transport)


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
