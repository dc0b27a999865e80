"""Numbers as the languages of Wikipedia write them."""

import pytest

from pipeline.mediawiki.numbers import number_format

NUMBERS = [
    ("en", "1234567.891", "1,234,567.891"),
    ("en", "-1234", "−1,234"),
    ("sv", "1234567.5", "1 234 567,5"),
    ("es", "9999", "9999"),
    ("es", "10000", "10 000"),
    ("hi", "1234567", "12,34,567"),
    ("hi", "123", "123"),
    ("bn", "1234567.5", "১২,৩৪,৫৬৭.৫"),
    ("de-at", "1234", "1.234"),
    ("xx", "1234", "1,234"),
    ("de", ".5", ",5"),
    ("de", "about 5", "about 5"),
    ("de", "1e5", "1e5"),
    ("de", "9" * 5000, "9" * 5000),
]


@pytest.mark.parametrize(("language", "number", "written"), NUMBERS, ids=lambda value: str(value)[:12])
def test_a_number_is_written_as_the_language_does(language: str, number: str, written: str) -> None:
    assert number_format(language).written(number) == written


@pytest.mark.parametrize("language", ["en", "de", "sv", "hi", "bn", "fa", "my"])
def test_what_is_written_is_read_again(language: str) -> None:
    numbers = number_format(language)
    assert [numbers.raw(numbers.written(number)) for number in ("1234567.5", "-12")] == ["1234567.5", "-12"]


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        ("fr", "1500 étudiants", "1 500 étudiants"),
        ("fr", "−2.5 m", "−2,5 m"),
        ("de", "~1500", "~1.500"),
        ("sv", "12 000", "12 000"),
        ("de", "1.234.567", "1.234.567"),
        ("lv", "de", ""),
        ("fr", "environ 5", ""),
        ("fr", "", ""),
    ],
)
def test_the_number_at_the_beginning_of_a_text(language: str, text: str, shown: str) -> None:
    assert number_format(language).leading(text) == shown
