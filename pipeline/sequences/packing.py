"""Paragraphs to token sequences with entity annotations: sentences, tokens around links, greedy packing."""

from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.sequences.sentences import DEFAULT, split
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.wikitext.paragraphs import Link, Paragraph

UNKNOWN_ENTITY = 1
MIN_WORDS = 3
MAX_WORDS = (1 << 15) + 1  # positions in shards have 16 bits; [CLS] and [SEP] are not in them


@dataclass(frozen=True)
class Limits:
    """Sizes in word tokens; ``max_words`` includes [CLS] and [SEP]."""

    max_words: int = 512
    max_entities: int = 128
    max_mention_words: int = 30
    min_sentence_words: int = 5

    def __post_init__(self) -> None:
        if not MIN_WORDS <= self.max_words <= MAX_WORDS:
            raise ValueError(f"max_words: found {self.max_words}, wanted {MIN_WORDS} to {MAX_WORDS}")


class Sequence(NamedTuple):
    """Word ids without [CLS] and [SEP]; annotations in order, spans half-open positions in ``word_ids``."""

    word_ids: list[int]
    entity_ids: list[int]
    entity_starts: list[int]
    entity_ends: list[int]


class Segment(NamedTuple):
    """A stretch of a sentence that is tokenised apart; ``entity_id`` is None between links."""

    text: str
    leading_space: bool
    entity_id: int | None


EntityLookup = Callable[[str], int | None]


def build_page(
    paragraphs: SequenceOf[Paragraph],
    *,
    language: str,
    tokenizer: WordTokenizer,
    entity_id: EntityLookup,
    limits: Limits,
    profile: str,
    splitter: str = DEFAULT,
    title: str | None = None,
) -> tuple[list[Sequence], Counter[str], Counter[str]]:
    """(sequences, drops by reason, facts) of one page, as the corpus section of the paper's code describes.

    ``entity_id`` gives a title's id or None; then the link is [UNK] in profile "fixed", dropped in "paper". In "fixed"
    a link to the entity of the page's own ``title``, to which a redirect leads back, is dropped. Facts count what went
    into the sequences (sentences, words, annotations, unknown_entities, sequences) and sentences_read, all there were.
    """
    drops: Counter[str] = Counter()
    facts: Counter[str] = Counter()
    sentences: list[list[Segment]] = []
    own = entity_id(title) if title is not None and profile != "paper" else None
    for paragraph in paragraphs:
        links = list(_known_links(paragraph.links, entity_id, own, profile, drops))
        places = [(link.start, link.end) for link in paragraph.links]
        spans = split(paragraph.text, language, splitter, places, profile=profile)
        sentences += _sentences(paragraph.text, links, spans, drops)
    segments = [segment for sentence in sentences for segment in sentence]
    ids = iter(tokenizer.encode([s.text for s in segments], [s.leading_space for s in segments]))
    split_up = [_join([(next(ids), each.entity_id) for each in sentence], limits, drops) for sentence in sentences]
    fitting = [sentence for sentence in split_up if _fits(sentence, limits, drops)]
    sequences = list(_pack(fitting, limits, drops, facts))
    facts["sentences_read"] = len(split_up)
    facts["sequences"] = len(sequences)
    facts["words"] = sum(len(sequence.word_ids) for sequence in sequences)
    facts["annotations"] = sum(len(sequence.entity_ids) for sequence in sequences)
    facts["unknown_entities"] = sum(sequence.entity_ids.count(UNKNOWN_ENTITY) for sequence in sequences)
    return sequences, +drops, facts


def _known_links(
    links: SequenceOf[Link], entity_id: EntityLookup, own: int | None, profile: str, drops: Counter[str]
) -> Iterator[tuple[Link, int]]:
    for link in links:
        found = entity_id(link.target)
        if found is not None and found == own:
            drops["links:same_page"] += 1
        elif found is not None:
            yield link, found
        elif profile == "paper":
            drops["links:out_of_vocabulary"] += 1
        else:
            yield link, UNKNOWN_ENTITY


def _sentences(
    text: str, links: SequenceOf[tuple[Link, int]], spans: SequenceOf[tuple[int, int]], drops: Counter[str]
) -> Iterator[list[Segment]]:
    """The sentences of a paragraph in segments; each link goes to the one sentence that holds all of it."""
    waiting = list(reversed(links))
    for start, end in spans:
        inside = []
        while waiting and waiting[-1][0].start < end:
            link, found = waiting.pop()
            if start <= link.start and link.end <= end:
                inside.append((link, found))
            else:
                drops["links:crosses_sentence"] += 1
        yield _segments(text, start, end, inside)
    drops["links:crosses_sentence"] += len(waiting)


def _segments(text: str, start: int, end: int, links: SequenceOf[tuple[Link, int]]) -> list[Segment]:
    spans: list[tuple[int, int, int | None]] = []
    for link, found in links:
        if start < link.start:
            spans.append((start, link.start, None))
        spans.append((link.start, link.end, found))
        start = link.end
    if start < end:
        spans.append((start, end, None))
    return [
        Segment(text[first:last], first == 0 or text[first].isspace() or text[first - 1].isspace(), entity_id)
        for first, last, entity_id in spans
    ]


def _join(tokenised: SequenceOf[tuple[list[int], int | None]], limits: Limits, drops: Counter[str]) -> Sequence:
    """One sentence as a sequence: token ids end to end, with an annotation for each linked segment."""
    word_ids: list[int] = []
    annotations: list[tuple[int, int, int]] = []
    for ids, entity_id in tokenised:
        if entity_id is not None and ids:
            start, words = len(word_ids), len(ids)
            if words > limits.max_mention_words:
                drops["mentions:cut_to_limit"] += 1
                words = limits.max_mention_words
            annotations.append((entity_id, start, start + words))
        elif entity_id is not None:
            drops["links:empty_after_tokenising"] += 1
        word_ids += ids
    if not annotations:
        return Sequence(word_ids, [], [], [])
    return Sequence(word_ids, *map(list, zip(*annotations, strict=True)))


def _fits(sentence: Sequence, limits: Limits, drops: Counter[str]) -> bool:
    words = len(sentence.word_ids)
    if limits.min_sentence_words <= words <= limits.max_words - 2:
        return True
    reason = "too_short" if words < limits.min_sentence_words else "too_long"
    drops[f"sentences:{reason}"] += 1
    drops[f"links:sentence_{reason}"] += len(sentence.entity_ids)
    return False


def _pack(
    sentences: SequenceOf[Sequence], limits: Limits, drops: Counter[str], facts: Counter[str]
) -> Iterator[Sequence]:
    """Fill sequences with complete sentences in order; those without links are dropped, and links beyond the limit."""
    packed, held = Sequence([], [], [], []), 0
    for sentence in [*sentences, None]:
        if held and (sentence is None or len(packed.word_ids) + len(sentence.word_ids) > limits.max_words - 2):
            if packed.entity_ids:
                facts["sentences"] += held
                drops["entities:over_limit"] += max(0, len(packed.entity_ids) - limits.max_entities)
                for column in (packed.entity_ids, packed.entity_starts, packed.entity_ends):
                    del column[limits.max_entities :]
                yield packed
            else:
                drops["sequences:no_links"] += 1
                drops["sentences:no_links"] += held
            packed, held = Sequence([], [], [], []), 0
        if sentence is not None:
            offset, held = len(packed.word_ids), held + 1
            packed.word_ids.extend(sentence.word_ids)
            packed.entity_ids.extend(sentence.entity_ids)
            packed.entity_starts.extend(start + offset for start in sentence.entity_starts)
            packed.entity_ends.extend(end + offset for end in sentence.entity_ends)
