"""A tokenizer from the corpus: the sample against plain Python, and what is written."""

import json
from itertools import accumulate
from pathlib import Path

import pytest
import regex

from pipeline import schemas, storage
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_files import SPECIAL_TOKENS
from pipeline.sequences.tokenizer_training import LETTER_COST, LONGEST_RUN, Sample, build, train_tokenizer

WORDS = "the Gull Bay is a flat shore of the north; Port Sorrel lies 3 miles off, it's said."
JAPANESE = "日本語の文には空白がない。カモメ湾は北の平らな岸である。"
Row = tuple[int, int, str]


def corpus(pages: int) -> list[Row]:
    """Paragraphs of many lengths, every fifth page of them without blanks."""
    return [
        (page * 7919, number, (JAPANESE if page % 5 == 0 else WORDS)[: (page * 13 + number * 29) % 80])
        for page in range(1, pages + 1)
        for number in range(page % 7)
    ]


def write(folder: Path, rows: list[Row], files: int) -> list[str]:
    """The rows as a table of paragraphs in so many files."""
    step = -(-len(rows) // files)
    paths = [str(folder / f"{files}-{first}.parquet") for first in range(0, len(rows), step)]
    for path, first in zip(paths, range(0, len(rows), step), strict=True):
        with storage.parquet_rows(path, schemas.TABLES["ExtractPages"]["paragraphs"].schema) as writer:
            writer.extend(
                (page, f"Page {page}", number, "", text, []) for page, number, text in rows[first : first + step]
            )
    return paths


def bucket(page: int, number: int) -> int:
    """The last bits of SplitMix64's hash, in whole numbers of Python."""
    whole = (1 << 64) - 1
    mixed = page * 0x9E3779B97F4A7C15 + number * 0xD1B54A32D192ED03 & whole
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & whole
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & whole
    return (mixed ^ mixed >> 31) % (1 << 16)


def cost(text: str) -> int:
    letters = len(regex.findall(r"\p{Han}|\p{Hiragana}|\p{Katakana}", text))
    return len(text) + (LETTER_COST - 1) * letters


@pytest.mark.parametrize("share", [0.03, 0.5, 0.99])
def test_the_sample_is_bounded_and_the_same_whatever_the_files(tmp_path: Path, share: float) -> None:
    rows = corpus(600)
    wanted = int(share * sum(cost(text) for *_, text in rows))
    samples = [Sample(write(tmp_path, rows, files), wanted) for files in (1, 5)]
    texts = list(samples[0])
    assert texts == list(samples[1])
    assert samples[0].paragraphs == len(texts) == len(rows) - samples[0].left_out
    assert 0.9 * wanted < sum(map(cost, texts)) <= wanted
    # Those with the smallest hashes, up to the first that would be too much, in the corpus's order.
    ordered = sorted(rows, key=lambda row: bucket(*row[:2]))
    totals = accumulate(cost(text) for *_, text in ordered)
    end = next(bucket(*row[:2]) for row, total in zip(ordered, totals, strict=True) if total > wanted)
    assert texts == [text for *place, text in rows if bucket(*place) < end]


def test_a_corpus_that_fits_is_taken_whole(tmp_path: Path) -> None:
    rows = corpus(50)
    paths = write(tmp_path, rows, 2)
    total = sum(cost(text) for *_, text in rows)
    assert list(Sample(paths, total)) == [text for *_, text in rows]
    assert Sample(paths, total - 1).left_out > 0
    told: list[tuple[int, int]] = []
    more = {"vocab_size": 300, "progress": lambda *done_and_all: told.append(done_and_all)}
    result = build(paths, str(tmp_path / "stage"), characters=total, **more)
    assert (told[0], told[-1]) == ((0, len(rows)), (len(rows), len(rows)))
    assert result.rows == {"word_types": 300, "paragraphs": len(rows)}
    assert result.drops == {}
    train_tokenizer((text for *_, text in rows), tmp_path / "texts", 300)
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / "stage/tokenizer" / name).read_bytes() == (tmp_path / "texts" / name).read_bytes()
    less = build(paths, str(tmp_path / "less"), vocab_size=300, characters=total // 2)
    assert less.drops["paragraphs:not_in_sample"] + less.rows["paragraphs"] == len(rows)


def test_runs_without_blanks_are_cut(tmp_path: Path) -> None:
    words = ["日本語文空白北平岸湾" * 4, "กขคงจฉชซฌญ" * 4, "internationalisation" * 2]
    train_tokenizer([f"{word} {word}" for word in words] * 2, tmp_path, 2000)
    tokenizer = WordTokenizer.load(tmp_path)
    longest = {
        word: max(len(tokenizer.decode([each])) for each in tokenizer.encode([word], [False])[0]) for word in words
    }
    assert list(longest.values()) == [LONGEST_RUN, LONGEST_RUN, 40]


def test_training_is_deterministic_and_in_robertas_format(tmp_path: Path) -> None:
    for name in ("first", "second"):
        train_tokenizer(iter([WORDS, JAPANESE] * 5), tmp_path / name, 350)
    for file in ("vocab.json", "merges.txt"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()
    vocab = json.loads((tmp_path / "first" / "vocab.json").read_text(encoding="utf-8"))
    assert [vocab[token] for token in SPECIAL_TOKENS] == [0, 1, 2, 3, len(vocab) - 1]
    assert sorted(vocab.values()) == list(range(len(vocab)))
    assert 261 < len(vocab) <= 350


@pytest.mark.parametrize("letter", "漢かカกກកကབé한яa")
def test_letters_of_every_script_without_blanks_count(tmp_path: Path, letter: str) -> None:
    paths = write(tmp_path, [(1, 0, letter * 10)], 1)
    assert bool(Sample(paths, 10).left_out) == (letter not in "é한яa")
    assert not Sample(paths, 10 * LETTER_COST).left_out
