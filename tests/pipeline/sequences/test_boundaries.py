"""Ends of sentences against paragraphs by hand in 18 languages, and what holds for every text."""

import time
import tomllib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.sequences import boundaries, sentences
from pipeline.sequences.sentences import split
from tests.support import DATA

CASES: dict[str, list[str]] = {
    language: table["cases"] for language, table in tomllib.loads((DATA / "sentences.toml").read_text("utf-8")).items()
}
UNSPACED = ("ja", "zh")
Spans = list[tuple[int, int]]


def read(case: str, language: str) -> tuple[str, Spans, set[int], set[int]]:
    """(text, links, ends that have to be found, ends that may be) of a case in the file's notation."""
    text, start = "", 0
    links: Spans = []
    required: set[int] = set()
    possible: set[int] = set()
    for mark in case:
        if mark == "{":
            start = len(text)
        elif mark == "}":
            links.append((start, len(text)))
        elif mark in "¦‖":
            text += "" if language in UNSPACED else " "
            (required if mark == "¦" else possible).add(len(text))
        else:
            text += mark
    return text, links, required, possible


@pytest.mark.parametrize("language", CASES)
def test_sentences_end_where_a_reader_ends_them(language: str) -> None:
    for case in CASES[language]:
        text, links, required, possible = read(case, language)
        spans = split(text, language, links=links)
        begins = {start for start, _ in spans[1:]}
        wrong = [text[max(0, begin - 20) : begin + 10] for begin in begins - required - possible]
        missed = [text[max(0, begin - 20) : begin + 10] for begin in required - begins]
        assert (wrong, missed) == ([], [])
        assert all(any(low <= start and end <= high for low, high in spans) for start, end in links)


@pytest.mark.parametrize(
    ("language", "text", "first"),
    [
        ("en", "It is sold. iPhone sales rose.", "It is sold."),
        ("ka", "ის არის კარგი. ეს კარგია.", "ის არის კარგი."),
        ("ja", "島々である。e-mailを使う。w3もある。", "島々である。e-mailを使う。w3もある。"),
        ("et", "Majas oli 15. Seejärel ehitati maja.", "Majas oli 15."),
        ("et", "Ta suri aastal 1990. Maja põles maha.", "Ta suri aastal 1990."),
        ("et", "Ta oli 15. Euroopa meistrivõistlustel.", "Ta oli 15. Euroopa meistrivõistlustel."),
        ("cs", "Přijel 3. 10. 1990 do Prahy.", "Přijel 3. 10. 1990 do Prahy."),
        ("et", "Külas elas 45. 1959. aastal oli seal kool.", "Külas elas 45."),
        ("en", "He came 3rd in 1990. 15 others came.", "He came 3rd in 1990."),
        ("en", "He was no. 5 there. He said no. He left.", "He was no. 5 there."),
        ("de-at", "Im 19. Jahrhundert war es.", "Im 19. Jahrhundert war es."),
        ("xx", "One came. then two. Three.", "One came. then two."),
        # Numbers that count, and those that are above the days of a month.
        ("fi", "Kyliä oli 96. Näistäkin moni autioitui.", "Kyliä oli 96."),
        ("fi", "Saaria on 28. Gotlanti on suurin.", "Saaria on 28."),
        ("fi", "Hän voitti 12. Tour de Francen.", "Hän voitti 12. Tour de Francen."),
        ("nn", "Det er 48. Noreg har fleire.", "Det er 48."),
        ("no", "Han ledet den 3. Infanteriregiment der.", "Han ledet den 3. Infanteriregiment der."),
        ("de", "Er war der 45. Präsident der USA.", "Er war der 45. Präsident der USA."),
        # Words of the letters of roman numbers.
        ("no", "De møttes i ICC. Domstolen lå der.", "De møttes i ICC."),
        ("de", "Er kaufte eine CD. Musik hörte er gern.", "Er kaufte eine CD."),
        ("de", "Das war der XIV. Kongress dort.", "Das war der XIV. Kongress dort."),
        # No sentence begins with these.
        ("it", "Nacque nel 100 a.C. , a Roma. Poi venne.", "Nacque nel 100 a.C. , a Roma."),
        ("it", "La Fiat S.p.A. ; la sede. Poi venne.", "La Fiat S.p.A. ; la sede."),
        ("it", "Visse (nel 300 a.C. ) a Roma. Poi venne.", "Visse (nel 300 a.C. ) a Roma."),
        ("en", "He said so. : it was. He left.", "He said so. : it was."),
        ("zh", "他来了。，他走了。她来了。", "他来了。，他走了。"),
        ("ar", "جاء الرجل. ، ثم ذهب. ثم عاد.", "جاء الرجل. ، ثم ذهب."),
    ],
)
def test_rules_have_their_exceptions(language: str, text: str, first: str) -> None:
    start, end = split(text, language)[0]
    assert text[start:end] == first


def test_a_letter_behind_an_apostrophe_is_no_small_beginning() -> None:
    assert boundaries.true_ends("Hij kwam niet. 's Avonds ging hij.", [15], "nl") == [15]


def test_an_open_bracket_glues_no_paragraph() -> None:
    inside = "He went (to a place. It was far. " + "There was more to say. " * 30
    assert len(split(inside + "He came back.", "en")) >= 30
    for text in (inside + "He came back.", inside + "He came) back."):
        ends = [at + 2 for at in range(len(text) - 2) if text[at : at + 2] == ". "]
        assert boundaries.true_ends(text, ends, "en") == ends
    assert len(split("He went (to a place. It was [far]. So it was) away. He left.", "en")) == 2


def test_joining_has_a_bound() -> None:
    text = "the text of a poet who knows no capitals ends here. " * 200
    spans = split(text, "en")
    assert all(end - start <= boundaries.MAX_JOINED + 100 for start, end in spans)
    assert len(spans) <= 12


# What holds for every text

WORDS = """a Mr. A. IV. 3. 1990. u godine Seejärel é e\u0301 😀 . ? 。 ! " “ ” ) ( [ ] , ; :
\u200f أ ค.ศ. ก ក្រុង ។ \u200b"""
PIECES = st.sampled_from([*WORDS.split(), " ", " ", " ", "\n"])
TEXTS = st.lists(PIECES, max_size=60).map("".join)
CODES = st.sampled_from(["en", "de", "et", "sr", "hu", "ja", "ar", "he", "th", "km", "my", "ka", "xx"])


@given(TEXTS, CODES, st.lists(st.integers(0, 200), max_size=8), st.sampled_from(["sentencex", f"{__name__}:words"]))
@example("a. b", "en", [1, 3], "sentencex")
def test_spans_are_in_order_and_cover_all_and_cut_no_link(
    text: str, language: str, edges: list[int], splitter: str
) -> None:
    edges = sorted({min(edge, len(text)) for edge in edges})
    links = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=False)]
    spans = split(text, language, splitter, links)
    flat = [edge for span in spans for edge in span]
    assert flat == sorted(flat)
    assert all(text[start:end].strip() == text[start:end] != "" for start, end in spans)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    if splitter == "sentencex" and len(text) < boundaries.MAX_JOINED and not set("\n\u200b") & set(text):
        assert not any(text[start] in ",;:)]" for start, _ in spans[1:])
    for first, last in links:
        assert not any(first < end and start < last for (_, end), (start, _) in pairwise(spans))


def words(text: str, language: str) -> Spans:
    """A splitter of one's own that ends at every blank."""
    spans, start = [], 0
    for word in text.split(" "):
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return spans


def test_a_splitter_of_ones_own_cuts_no_link_either() -> None:
    name = f"{__name__}:words"
    assert split("one two three four", "en", name, [(4, 13)]) == [(0, 3), (4, 13), (14, 18)]
    assert len(split("one two three four", "en", name, [(4, 13)], profile="paper")) == 4


HARD = ["a. ", "A. ", "(a. B ", "(", "[(", "3. A", "“A. ", "x", "ab\n\n", "Mr. ", "a.B", "(A. b) "]
HARD += ["ก", "ค.ศ. 1 ", "។", "» "]


def cheapest(run: Callable[[], object]) -> float:
    def once() -> float:
        began = time.process_time()
        run()
        return time.process_time() - began

    return min(once() for _ in range(3))


@pytest.mark.parametrize("language", ["en", "et", "th"])
@pytest.mark.parametrize("piece", HARD)
def test_time_grows_with_the_length_alone(language: str, piece: str) -> None:
    """A square would make four times the length take 16 times as long."""
    short, long = (piece * (size // len(piece)) for size in (25_000, 100_000))
    links = [(at, at + 2) for at in range(0, len(long) - 2, 50)]
    split(short, language, links=links)
    few = [link for link in links if link[1] <= len(short)]
    bound = 9 * cheapest(lambda: split(short, language, links=few)) + 0.01
    assert cheapest(lambda: split(long, language, links=links)) < bound


def test_sentencex_gets_every_character_three_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    pieces = sentences._pieces

    def counted(text: str, language: str) -> list[str]:
        given.append(len(text))
        return pieces(text, language)

    monkeypatch.setattr(sentences, "_pieces", counted)
    mixed = "Short. " + "Long " * 3000 + "end. Yes. " * 9000
    for text in ("“A. " * 25_000, "x. " * 33_000, "ж" * 100_000 + ".", mixed):
        given.clear()
        split(text, "en")
        assert max(given) <= sentences._WINDOW
        assert sum(given) <= 3 * len(text)


def test_windows_end_sentences_where_one_piece_would() -> None:
    text = "This is a sentence of some words. Is it? Dr. Who says so! " * 700
    one = split(text[:5800], "en")
    wanted = [(start + at, end + at) for at in range(0, 7 * 5800, 5800) for start, end in one]
    assert split(text, "en") == wanted
