from hypothesis import given
from hypothesis import strategies as st

from pipeline.sentences import split


def sentences(text: str, language: str) -> list[str]:
    return [text[start:end] for start, end in split(text, language)]


def test_sentences_are_split_by_language() -> None:
    assert sentences("Dr. Smith came. He left at 5 p.m. sharp.  Why?", "en") == [
        "Dr. Smith came.",
        "He left at 5 p.m. sharp.",
        "Why?",
    ]
    assert sentences("島々である。港に住む。", "ja") == ["島々である。", "港に住む。"]
    assert sentences("أين الميناء؟ هو هنا.", "ar") == ["أين الميناء؟", "هو هنا."]
    assert sentences("One. Two.", "no-such-language") == ["One.", "Two."]


def test_offsets_are_code_points_beyond_the_bmp() -> None:
    text = "😀😀 Birds 🐦 sing. 𝒜𝓁𝓁 fly. 日本。"
    assert sentences(text, "en") == ["😀😀 Birds 🐦 sing.", "𝒜𝓁𝓁 fly.", "日本。"]


def test_blank_texts_have_no_sentences() -> None:
    assert split("", "en") == split(" \n ", "en") == []


PIECES = st.sampled_from(
    ["a", "Mr.", "é", "e\u0301", "😀", " ", "  ", ".", "?", "。", "!", '"', ")", "(", "\n", "\u200f", "أ"]
)


@given(st.lists(PIECES).map("".join), st.sampled_from(["en", "de", "ja", "ar", "he", "xx"]))
def test_spans_cover_all_but_blanks_in_order(text: str, language: str) -> None:
    spans = split(text, language)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(text[start:end].strip() == text[start:end] != "" for start, end in spans)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
