"""Places for requests: where all are taken, who takes most makes room for who takes less."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


class Refused(Exception):
    """A request that is not answered: the status, and why in a line."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


@dataclass
class Places:
    """Places for so many requests, each for so many seconds; a later one is refused with this status and reason."""

    most: int
    seconds: float
    status: int
    reason: str
    taken: dict[asyncio.Timeout, float] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def place(self, weight: float) -> AsyncIterator[None]:
        """Have a place; where there is none, the one of the largest weight is refused.

        Raises: Refused, at once or where the place is lost.
        """
        full = Refused(503, f"{self.most} requests are being answered; ask again later")
        if len(self.taken) >= self.most:
            heaviest = max(self.taken, key=self.taken.__getitem__, default=None)
            if heaviest is None or self.taken[heaviest] <= weight:
                raise full
            del self.taken[heaviest]
            if not heaviest.expired():
                heaviest.reschedule(0)
        late = asyncio.timeout(self.seconds)
        try:
            async with late:
                self.taken[late] = weight
                yield
        except TimeoutError:
            raise Refused(self.status, self.reason) if late in self.taken else full from None
        finally:
            self.taken.pop(late, None)
