"""The worked examples in docstrings."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["placeholders", "links.marks", "link_rules", "holes", "templates.rules"])
def test_examples(name: str) -> None:
    failed, attempted = doctest.testmod(import_module(f"pipeline.wikitext.{name}"))
    assert attempted > 0
    assert failed == 0
