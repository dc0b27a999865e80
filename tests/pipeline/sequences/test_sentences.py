import hashlib
from importlib import metadata
from pathlib import Path

import pytest
import sentencex

from pipeline.sequences.sentences import split, splitter_identity


def sentences(text: str, language: str) -> list[str]:
    return [text[start:end] for start, end in split(text, language)]


def test_offsets_are_code_points_beyond_the_bmp() -> None:
    text = "😀😀 Birds 🐦 sing. 𝒜𝓁𝓁 fly. 日本。"
    assert sentences(text, "en") == ["😀😀 Birds 🐦 sing.", "𝒜𝓁𝓁 fly.", "日本。"]


def halves(text: str, language: str) -> list[tuple[int, int]]:
    """A splitter of one's own, as a user would write it."""
    return [(0, len(text) // 2), (len(text) // 2, len(text))]


def backwards(text: str, language: str) -> list[tuple[int, int]]:
    return [(1, 2), (0, 1)]


def beyond(text: str, language: str) -> list[tuple[int, int]]:
    return [(0, len(text) + 1)]


@pytest.mark.parametrize("name", ["backwards", "beyond"])
def test_a_splitter_whose_spans_are_wrong_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: gave the span .* of a text of 8 characters"):
        split("one  two", "en", f"{__name__}:{name}")


@pytest.mark.parametrize("blank", ["\xa0", "\u2009", "\u202f", "\u3000"])
@pytest.mark.parametrize("language", ["en", "fr", "de", "el", "hi", "my"])
def test_a_blank_beyond_ascii_is_as_good_as_another(language: str, blank: str) -> None:
    """The library breaks down at one behind a single capital."""
    for text in ("It has vitamin C . It helps.", "He met J . Smith. They left.", "J ."):
        assert split(text.replace(" .", f"{blank}."), language) == split(text, language)


def test_a_text_that_the_library_breaks_down_at_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def segment(language: str, text: str) -> list[str]:
        raise PanicException

    monkeypatch.setattr(sentencex, "segment", segment)
    assert sentences("One. Two.", "en") == ["One. Two."]


def test_what_decides_a_splitters_sentences() -> None:
    assert splitter_identity("sentencex") == ["sentencex", metadata.version("sentencex")]
    name = f"{__name__}:halves"
    assert splitter_identity(name) == [name, hashlib.sha256(Path(__file__).read_bytes()).hexdigest()]


@pytest.mark.parametrize(
    "name", ["string:digits", "nltk", "no_such_module:split", f"{__name__}:no_such_function", ":f", "m:"]
)
def test_an_unknown_splitter_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"sentence splitter {name}: "):
        split("One.", "en", name)
