"""A dump's sentences whose names are all links, against plain loops over the same paragraphs."""

import json
from collections import Counter
from pathlib import Path

import pytest
import regex

pytest.importorskip("sentencex", reason="sentences are found with sentencex")
pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.held_out import is_held_out
from pipeline.sequences.sentences import split
from tasks.linking.corpora import linked_sentences as corpus
from tasks.linking.corpora.linked_sentences import Choice
from tasks.ner import task as ner
from tasks.ner.words import WORD, split_words
from tests.tasks.linking.corpora.test_pages import SHARE, Wiki

CAPITAL = regex.compile(r"\p{Uppercase}")
ALL = Choice(SHARE, 10_000, 10_000)


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Wiki:
    return Wiki(tmp_path_factory.mktemp("wiki"))


def build(wiki: Wiki, name: str, choice: Choice, files: int = 3) -> tuple[Counter[str], dict[str, list[str]]]:
    """What was left out, and the lines of each split."""
    folder = wiki.folder / name
    result = corpus.build(wiki.write(files), str(folder), "en", choice, pages=len(wiki.pages.pages))
    lines = {
        split: (folder / file).read_text(encoding="utf-8").splitlines()
        for split, file in corpus.FILES.items()
    }
    assert result.rows == {split: len(each) for split, each in lines.items()}
    return Counter(result.drops), lines


def plain(words: list[str], marks: list[list[int]]) -> str | list[str]:
    """The tags of a sentence, or why it is left out.

    `marks` has for each character of each word the number of the link with a capital around it, from 1, or 0.
    """
    if not any(map(any, marks)):
        return "no_link"
    if not 5 <= len(words) <= 40:
        return "length"
    if any(len(set(each)) > 1 for each in marks):
        return "part_of_word"
    numbers = [each[0] for each in marks]
    for place in range(1, len(words)):
        if CAPITAL.search(words[place]) and not numbers[place] and words[place - 1] not in '."“„«':
            return "not_linked"
    return [
        "O" if not number else "I-LINK" if before == number else "B-LINK"
        for before, number in zip([0, *numbers], numbers, strict=False)
    ]


def test_sentences_and_tags_are_those_of_a_plain_loop(wiki: Wiki) -> None:
    drops, lines = build(wiki, "all", ALL)
    wanted: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}
    reasons: Counter[str] = Counter()
    for page, rows in wiki.of_page.items():
        if not any(row["links"] for row in rows):
            continue
        for row in rows:
            text = row["text"]
            marks = [0] * len(text)
            for number, link in enumerate(row["links"], start=1):
                if CAPITAL.search(text[link["start"] : link["end"]]):
                    marks[link["start"] : link["end"]] = [number] * (link["end"] - link["start"])
            spans = [(link["start"], link["end"]) for link in row["links"]]
            for start, end in split(text, "en", links=spans):
                found = list(WORD.finditer(text, start, end))
                words = [match[0] for match in found]
                tags = plain(words, [marks[slice(*match.span())] for match in found])
                if isinstance(tags, str):
                    reasons[f"sentences:{tags}"] += 1
                else:
                    line = json.dumps({"tokens": words, "ner_tags": tags}, ensure_ascii=False)
                    wanted[is_held_out(page, SHARE)][line] += 1
    assert Counter(lines["train"]) == wanted[False]
    assert Counter(lines["dev"] + lines["test"]) == wanted[True]
    assert 0 <= len(lines["dev"]) - len(lines["test"]) <= 1
    without = len(wiki.pages.pages) - sum(any(row["links"] for row in rows) for rows in wiki.of_page.values())
    assert drops == reasons + Counter({"pages:no_links": without})
    assert min(reasons["sentences:no_link"], reasons["sentences:not_linked"], len(lines["train"])) > 5


def test_hashes_choose_the_sentences_and_the_files_of_paragraphs_do_not_matter(wiki: Wiki) -> None:
    pages = len(wiki.of_page)
    drops, few = build(wiki, "few", Choice(SHARE, pages, 10))
    assert build(wiki, "few-again", Choice(SHARE, pages, 10), files=1) == (drops, few)
    _, more = build(wiki, "all-again", ALL)
    assert more["train"][:pages] == few["train"]
    assert len(few["dev"]) == len(few["test"]) == 5
    assert drops["sentences:over_limit"] >= len(more["train"]) - pages > 0


def test_the_files_are_a_data_set_of_ner(wiki: Wiki) -> None:
    build(wiki, "data", ALL)
    datasets = {
        name: ner.read(wiki.folder / "data" / file, tag_column="") for name, file in corpus.FILES.items()
    }
    assert ner.label_names(datasets, ()) == ("O", "LINK")


@pytest.mark.parametrize(
    ("text", "names", "wanted"),
    [
        ("In old times Berlin was small .", ["Berlin"], "O O O B O O O"),
        ('He said "It is in New York" then .', ["New York"], "O O O O O O B I O O O"),
        ("They met Ada. Then they went home .", ["Ada"], "O O B O O O O O O"),
        ("The Beatles went home at last .", ["Beatles"], "O B O O O O O"),
        ("In old times Bonn and Berlin were small .", ["Berlin"], corpus.NOT_LINKED),
        ("In old times l'Académie and Berlin were small .", ["Berlin"], corpus.NOT_LINKED),
        ("In old times an iPhone was in Berlin .", ["Berlin"], corpus.NOT_LINKED),
        ("In old times pre-Roman ways were known .", ["Roman"], corpus.PART_OF_WORD),
        ("It is Berlin .", ["Berlin"], corpus.OTHER_LENGTH),
        ("It is Berlin" + " and so on" * 13, ["Berlin"], corpus.OTHER_LENGTH),
        ("In old times it was small .", [], corpus.NO_LINK),
    ],
)
def test_what_a_sentence_is_taken_for(text: str, names: list[str], wanted: str) -> None:
    [words] = split_words(text, [(0, len(text))])
    spans = [(text.index(name), text.index(name) + len(name)) for name in names]
    if wanted.startswith("sentences:"):
        with pytest.raises(corpus.Skipped, match=f"^{wanted}$"):
            corpus.tags_of(words, spans)
    else:
        tags = [tag if tag == "O" else f"{tag}-LINK" for tag in wanted.split()]
        assert corpus.tags_of(words, spans) == tags


def test_without_held_out_pages_there_is_no_dev(wiki: Wiki, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^dev: no sentence for it .* a larger corpus.held_out"):
        corpus.build(wiki.paths, str(tmp_path), "en", Choice(0, 100, 100), pages=40)
