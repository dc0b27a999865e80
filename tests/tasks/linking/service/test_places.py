"""Who takes most makes room for who takes less, where all places are taken."""

import asyncio
from collections.abc import Sequence

import pytest

from tasks.linking.service.places import Places, Refused

FULL = (503, "2 requests are being answered; ask again later")


def outcomes(weights: Sequence[float]) -> list[tuple[int, str] | None]:
    """The answers to requests that come one after another to two places, and stay; None for those that can."""

    async def request(weight: float) -> None:
        async with places.place(weight):
            await stays.wait()

    async def run() -> Sequence[object]:
        tasks = []
        for weight in weights:
            tasks.append(asyncio.create_task(request(weight)))
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        stays.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert not places.taken
        return found

    stays, places = asyncio.Event(), Places(2, 30.0, 408, "too late")
    found = asyncio.run(run())
    assert all(each is None or isinstance(each, Refused) for each in found)
    return [(each.status, each.reason) if isinstance(each, Refused) else None for each in found]


@pytest.mark.parametrize(
    ("weights", "stay"),
    [
        ([5, 5], [True, True]),
        ([5, 5, 5], [True, True, False]),
        ([5, 7, 6], [True, False, True]),
        ([5, 7, 8], [True, True, False]),
        ([9, 8, 7, 6, 5, 9], [False, False, False, True, True, False]),
        ([-1, -2, -3, -4], [False, False, True, True]),
    ],
)
def test_the_heaviest_makes_room(weights: Sequence[float], stay: Sequence[bool]) -> None:
    assert outcomes(weights) == [None if each else FULL for each in stay]
