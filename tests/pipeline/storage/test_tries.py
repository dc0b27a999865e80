from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.storage.tries import TextMap, write_numbers

TEXTS = st.text(alphabet="ab A.日本é😀\n", max_size=6)


@settings(max_examples=30)  # each opens a hundred files
@given(st.dictionaries(TEXTS, st.integers(-(2**31), 2**31 - 1), max_size=20), st.lists(TEXTS, max_size=10))
def test_a_file_of_tries_is_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, numbers: dict[str, int], others: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("tries")
    assert write_numbers(str(folder / "numbers"), numbers.items()) == len(numbers)
    mapped = TextMap(str(folder / "numbers"))
    assert len(mapped) == len(numbers)
    for text in [*numbers, *others]:
        assert mapped.get(text) == numbers.get(text)
        assert (text in mapped) == (text in numbers)
        found = {text[:end] for end in range(1, len(text) + 1)} & set(numbers)
        assert mapped.prefixes(text) == sorted(found, key=len)
        if len(text) > 1:
            longer = {each: number for each, number in numbers.items() if each.startswith(text)}
            assert dict(mapped.beginning_with(text)) == longer


def test_the_order_of_texts_does_not_matter(tmp_path: Path) -> None:
    rows = [(f"{chr(65 + number % 90)} name {number}", number) for number in range(500)]
    for name, ordered in (("a", rows), ("b", rows[::-1])):
        assert write_numbers(str(tmp_path / name), ordered) == 500
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("content", [b"", b"tries 2\n", b"We love Marisa." + bytes(1000), None])
def test_another_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """None: one that is cut."""
    path = tmp_path / "aliases.tries"
    write_numbers(str(path), [("Paris", 3)])
    path.write_bytes(path.read_bytes()[:-8] if content is None else content)
    with pytest.raises(ValueError, match=r"aliases\.tries: no file of tries, or not a whole one"):
        TextMap(str(path))
