"""Hypothesis where it is installed; elsewhere (a machine that only trains) its tests are skipped with the reason."""

from collections.abc import Callable
from typing import Any

import pytest

try:
    from hypothesis import example, given, settings
    from hypothesis import strategies as st
except ModuleNotFoundError:

    class Absent:
        """Stands for any strategy, and for whatever is called on it."""

        def __getattr__(self, name: str) -> "Absent":
            return self

        def __call__(self, *arguments: Any, **settings: Any) -> "Absent":
            return self

        def __getitem__(self, item: Any) -> "Absent":
            return self

    def given(*strategies: Any, **named: Any) -> Callable[[Callable[..., None]], Callable[[], None]]:
        """A test that is skipped, and so needs none of its arguments."""

        def replace(test: Callable[..., None]) -> Callable[[], None]:
            def skipped() -> None:
                pytest.skip("hypothesis is not installed")

            skipped.__name__ = test.__name__
            return skipped

        return replace

    def settings(*positional: Any, **named: Any) -> Callable[[Any], Any]:
        """Leaves a test as it is."""
        return lambda test: test

    example = settings
    st = Absent()

__all__ = ["example", "given", "settings", "st"]
