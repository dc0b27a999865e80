from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.mediawiki.titles import redirect_target
from pipeline.sequences.packing import Limits, Sequence, build_page
from pipeline.sequences.tokenizer import WordPiece, WordTokenizer
from pipeline.sequences.tokenizer_files import BERT_SPECIAL_TOKENS, Normalizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from pipeline.wikitext.extract import extract
from pipeline.wikitext.paragraphs import Link, Paragraph
from tests.support.oracle_sequences import SequenceMaker, Tokenizer
from tests.support.real_pages import real_pages

TITLES = {"Port Sorrel": 3, "Gull Bay": 4, "Tern Rock": 5}
TEXT = "The ferry sails from Port Sorrel to Gull Bay. The birds of Tern Rock sing every single morning."


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 bytes and a few merges: texts become many tokens, and every string can be encoded."""
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer([TEXT] * 3, folder, 400)
    return folder


@pytest.fixture(scope="module")
def tokenizer(learnt: Path) -> WordTokenizer:
    return WordTokenizer.load(learnt)


@pytest.fixture(scope="module")
def plain(learnt: Path) -> Tokenizer:
    """The same as the oracle spells it out."""
    return Tokenizer(learnt)


def paragraph(text: str, *anchors: tuple[str, str]) -> Paragraph:
    links = [Link(text.index(anchor), text.index(anchor) + len(anchor), target) for anchor, target in anchors]
    return Paragraph("", text, tuple(links))


PLACES = paragraph(TEXT, ("Port Sorrel", "Port Sorrel"), ("Gull Bay", "Gull Bay"), ("Tern Rock", "Tern Rock"))


def build(
    tokenizer: WordTokenizer,
    *page: Paragraph,
    language: str = "en",
    profile: str = "fixed",
    title: str = "Here",
    **limits: int,
) -> tuple[list[Sequence], Counter[str], Counter[str]]:
    options: Any = {"language": language, "profile": profile, "title": title, "limits": Limits(**limits)}
    return build_page(page, tokenizer=tokenizer, entity_id=TITLES.get, **options)


def mentions(sequence: Sequence, tokenizer: WordTokenizer) -> list[tuple[str, int]]:
    spans = zip(sequence.entity_ids, sequence.entity_starts, sequence.entity_ends, strict=True)
    return [(tokenizer.decode(sequence.word_ids[start:end]).strip(), entity_id) for entity_id, start, end in spans]


def test_links_become_annotations(tokenizer: WordTokenizer) -> None:
    sequences, drops, facts = build(tokenizer, PLACES)
    assert [mentions(sequence, tokenizer) for sequence in sequences] == [
        [("Port Sorrel", 3), ("Gull Bay", 4), ("Tern Rock", 5)]
    ]
    assert tokenizer.decode(sequences[0].word_ids) == " " + TEXT
    assert not +drops
    words = len(sequences[0].word_ids)
    assert +facts == {"sentences": 2, "sentences_read": 2, "sequences": 1, "words": words, "annotations": 3}


def test_words_of_bert_are_annotated_alike() -> None:
    words = sorted({*TEXT.lower().replace(".", " .").split(), "##s", "bird"} - {"birds"})
    vocab = {word: number for number, word in enumerate([*BERT_SPECIAL_TOKENS, *words])}
    tokenizer = WordPiece(vocab, Normalizer())
    [sequence], drops, _ = build(tokenizer, PLACES)
    assert mentions(sequence, tokenizer) == [("port sorrel", 3), ("gull bay", 4), ("tern rock", 5)]
    assert tokenizer.decode(sequence.word_ids) == TEXT.lower().replace(".", " .")
    assert vocab["##s"] in sequence.word_ids
    assert not +drops


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("th", "กรุงเทพ เป็นเมืองหลวงของประเทศไทย ก่อตั้งเมื่อ ค.ศ. 1782 ในรัชสมัยของรัชกาลที่ 1 "),
        ("km", "ភ្នំពេញជាទីក្រុងធំជាងគេនៃប្រទេសកម្ពុជា"),
        ("lo", "ນະຄອນຫຼວງວຽງຈັນ ເປັນເມືອງຫຼວງຂອງປະເທດລາວ ສ້າງຂຶ້ນໃນປີ ຄ.ສ. 1560 "),
        ("my", "ရန်ကုန်မြို့သည် မြန်မာနိုင်ငံ၏ အကြီးဆုံးမြို့ ဖြစ်သည်။ "),
    ],
)
def test_texts_without_sentences_fit_where_every_byte_is_a_token(tmp_path: Path, language: str, text: str) -> None:
    """Nothing is dropped for its length at the default limits, so that no share stops the run."""
    train_tokenizer([TEXT], tmp_path, 262)
    link = Link(0, 7, "Port Sorrel")
    page = [Paragraph("", (text * count).strip(), (link,)) for count in (1, 2, 5, 40)]
    _, drops, facts = build(WordTokenizer.load(tmp_path), *page, language=language)
    assert facts["sentences_read"] >= 10
    assert not drops["sentences:too_short"] + drops["sentences:too_long"] + drops["links:crosses_sentence"]


def test_mentions_without_tokens_are_counted(tokenizer: WordTokenizer) -> None:
    blank = Paragraph("", TEXT, (Link(3, 4, "Gull Bay"), Link(21, 32, "Port Sorrel")))
    sequences, drops, _ = build(tokenizer, blank)
    assert mentions(sequences[0], tokenizer) == [("Port Sorrel", 3)]
    assert +drops == {"links:empty_after_tokenising": 1}


def test_limits_that_cannot_be_are_refused() -> None:
    """Positions have 16 bits."""
    Limits(max_words=32769)
    for words in (2, 32770):
        with pytest.raises(ValueError, match=f"max_words: found {words}, wanted 3 to 32769"):
            Limits(max_words=words)


# Against the oracle


def by_oracle(
    page: list[Paragraph], language: str, tokenizer: Tokenizer, limits: Limits, profile: str
) -> tuple[list[Sequence], Counter[str]]:
    """The sequences of the page Gull Bay, and what is dropped."""
    maker = SequenceMaker(tokenizer, TITLES, language, profile, **asdict(limits))
    links = ([link._asdict() for link in each.links] for each in page)
    of_page = {"page_id": 1, "title": "Gull Bay"}
    rows = [{**of_page, "text": each.text, "links": of} for each, of in zip(page, links, strict=True)]
    found = maker.block(rows)["sequences"]
    return [Sequence(*(row[name] for name in Sequence.__match_args__)) for row in found], +maker.drops


PARTS = st.sampled_from(
    ["Port Sorrel", "Bay. The", "a", "Mr.", " ", "  ", ". ", "! ", "é", "😀", "日本。", "ferry", '"', "(", ")", "'s"]
)


@st.composite
def paragraphs(draw: st.DrawFn) -> Paragraph:
    part = st.tuples(PARTS, st.booleans(), st.sampled_from([*TITLES, "Nowhere"]))
    parts = draw(st.lists(part, max_size=30))
    text, links = "", []
    for part, linked, target in parts:
        if linked and part.strip():
            links.append(Link(len(text), len(text) + len(part.rstrip()), target))
        text += part
    return Paragraph("", text, tuple(links))


@settings(deadline=None)
@given(
    st.lists(paragraphs(), max_size=4),
    st.builds(Limits, st.integers(8, 60), st.integers(1, 6), st.integers(1, 5), st.integers(1, 6)),
    st.sampled_from(["fixed", "paper"]),
    st.sampled_from(["en", "ja"]),
)
@example([Paragraph("", "日本。's", (Link(3, 5, "Gull Bay"),))], Limits(8, 1, 1, 1), "fixed", "en")
def test_any_page_agrees_with_the_plain_rules(
    tokenizer: WordTokenizer, plain: Tokenizer, page: list[Paragraph], limits: Limits, profile: str, language: str
) -> None:
    sequences, drops, facts = build_page(
        page, language=language, tokenizer=tokenizer, entity_id=TITLES.get, limits=limits, profile=profile,
        title="Gull Bay",
    )  # fmt: skip
    assert (sequences, +drops) == by_oracle(page, language, plain, limits, profile)
    links = sum(len(one.links) for one in page)
    lost = sum(drops[reason] for reason in drops if reason.startswith(("links:", "entities:")))
    assert facts["annotations"] + lost == links


@pytest.mark.parametrize(
    ("dump", "language", "count"), [("enwiki-2016-206", "en", 4), ("arwiki-mini", "ar", 1), ("jawiki-mini", "ja", 1)]
)
def test_real_pages_agree_with_the_plain_rules(shared: Path, dump: str, language: str, count: int) -> None:
    folder, limits = shared / "data" / "roberta-tokenizer", Limits()
    roberta, plain_roberta = WordTokenizer.load(folder), Tokenizer(folder)
    texts = real_pages(shared / "data" / "wikipedia" / f"{dump}.xml.bz2", language)
    pages = ([*extract(text, site).paragraphs] for site, text in texts if not redirect_target(text, site))
    total = 0
    for page in [next(pages) for _ in range(count)]:
        sequences, drops, facts = build(roberta, *page, language=language, title="Gull Bay")
        assert (sequences, +drops) == by_oracle(page, language, plain_roberta, limits, "fixed")
        assert facts["words"] == sum(len(sequence.word_ids) for sequence in sequences)
        anchors = iter(one.text[link.start : link.end] for one in page for link in one.links)
        for mention, _ in (pair for sequence in sequences for pair in mentions(sequence, roberta)):
            assert any(anchor.startswith(mention.rstrip("\ufffd")) for anchor in anchors)
        total += facts["annotations"]
    assert total > 100
