"""Marked mentions: order of markers, what is cut, and the classifier against transformers."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import ByteLevelBPE, WordTokenizer
from tasks.io.windows import boundaries
from tasks.markers import MarkedFeature, MarkedTask, add_word_markers, fit, marked_input
from tasks.relations import relation_classification
from tasks.task import InputSettings
from tasks.typing import entity_typing
from tests.support.models import TINY
from tests.support.properties import given, st

TEXT = "one two three four five six seven eight"


def rendered(text: str, spans: list[tuple[int, int]], names: str = "HT") -> str:
    parts, last = [], 0
    for place, span, side in boundaries(spans):
        parts += [text[last:place], ("[" if not side else "/") + names[span] + "]"]
        last = place
    return "".join([*parts, text[last:]])


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        ((0, 1), (2, 3), "[H]a/H]b[T]c/T]de"),
        ((2, 3), (0, 1), "[T]a/T]b[H]c/H]de"),
        ((0, 2), (2, 3), "[H]ab/H][T]c/T]de"),
        ((1, 4), (2, 3), "a[H]b[T]c/T]d/H]e"),
        ((2, 3), (1, 4), "a[T]b[H]c/H]d/T]e"),
        ((1, 3), (1, 4), "a[T][H]bc/H]d/T]e"),
        ((1, 4), (2, 4), "a[H]b[T]cd/T]/H]e"),
        ((1, 3), (2, 4), "a[H]b[T]c/H]d/T]e"),
        ((1, 3), (1, 3), "a[H][T]bc/T]/H]de"),
    ],
)
def test_markers_are_nested_as_spans_are(head: tuple[int, int], tail: tuple[int, int], expected: str) -> None:
    assert rendered("abcde", [head, tail]) == expected


spans = st.tuples(st.integers(0, 7), st.integers(0, 7)).map(lambda pair: (min(pair), max(pair) + 1))


@given(st.lists(spans, min_size=1, max_size=3))
def test_every_marker_stands_at_its_span(found: list[tuple[int, int]]) -> None:
    marks = boundaries(found)
    assert [place for place, _, _ in marks] == sorted(place for place, _, _ in marks)
    assert Counter((n, side, place) for place, n, side in marks) == Counter(
        (number, side, place) for number, ends in enumerate(found) for side, place in enumerate(ends)
    )
    opened: set[int] = set()
    for _, number, side in marks:
        assert (number in opened) == bool(side)
        opened.add(number)


@pytest.mark.parametrize(
    ("profile", "text", "spans", "segments", "blanks"),
    [
        ("fixed", "one two (three) four", [(4, 7), (9, 14)], ["one", "two", "(", "three", ") four"], "01100"),
        ("paper", "two(three)four", [(4, 9), (10, 14)], ["two(", "three", ")", "four", ""], "11111"),
    ],
)
def test_segments_are_as_they_are_written_or_each_has_a_leading_space(
    tokenizer: WordTokenizer, profile: str, text: str, spans: list[Any], segments: list[str], blanks: str
) -> None:
    inputs = InputSettings(tokenizer, (), {"[HEAD]": 900, "[TAIL]": 901}, 102, profile)
    word_ids, ends = marked_input(text, spans, inputs, Counter())
    words = tokenizer.encode(segments, [blank == "1" for blank in blanks])
    expected = [tokenizer.cls_id, *words[0], 900, *words[1], 900, *words[2], 901, *words[3], 901, *words[4]]
    assert word_ids.tolist() == [*expected, tokenizer.sep_id]
    assert word_ids[ends].tolist() == [[900, 900], [901, 901]]
    assert ends[0].tolist() == [expected.index(900), expected.index(900) + len(words[1]) + 1]


@given(st.lists(st.integers(0, 9), min_size=3, max_size=5), st.integers(0, 40))
def test_what_is_cut_is_context_first(lengths: list[int], room: int) -> None:
    segments = [[100 * number + place for place in range(size)] for number, size in enumerate(lengths)]
    counts: Counter[str] = Counter()
    left, *inner, right = fit(segments, room, counts)
    assert sum(map(len, [left, *inner, right])) <= room
    assert left == segments[0][len(segments[0]) - len(left) :]
    assert right == segments[-1][: len(right)]
    assert all(part == whole[: len(part)] for part, whole in zip(inner, segments[1:-1], strict=True))
    if sum(lengths[1:-1]) <= room:
        assert inner == segments[1:-1]
        assert sum(map(len, [left, *inner, right])) == min(room, sum(lengths))
    assert counts["mentions_cut"] == (inner != segments[1:-1])
    assert counts["contexts_cut"] == ([left, right] != [segments[0], segments[-1]])


def test_a_model_too_short_for_markers_is_refused(tokenizer: WordTokenizer) -> None:
    inputs = InputSettings(tokenizer, (), {"[HEAD]": 1, "[TAIL]": 2}, 5, "fixed")
    with pytest.raises(ValueError, match="no room for the markers"):
        marked_input(TEXT, [(0, 3), (4, 7)], inputs, Counter())


def test_markers_start_as_copies_and_learn_alone(tokenizer: WordTokenizer) -> None:
    torch.manual_seed(0)
    luke = LukeModel(TINY)
    before = luke.word_embeddings.token.weight.detach().clone()
    markers = add_word_markers(luke, small(tokenizer), {"[HEAD]": "@", "[TAIL]": "#"}, "tokenizer")
    table = luke.word_embeddings.token.weight
    assert markers == {"[HEAD]": TINY.vocab_size, "[TAIL]": TINY.vocab_size + 1}
    assert luke.config.vocab_size == len(table) == TINY.vocab_size + 2
    assert torch.equal(table[: TINY.vocab_size], before)
    assert torch.equal(table[TINY.vocab_size :], before[[7, 9]])
    assert table.requires_grad
    assert luke.word_embeddings.token.padding_idx == TINY.pad_token_id


def small(tokenizer: ByteLevelBPE) -> WordTokenizer:
    """A tokenizer whose @ and # are the tokens 7 and 9."""
    changed = ByteLevelBPE(tokenizer.vocab, tokenizer.merges)
    changed.vocab = {"@": 7, "#": 9}
    return changed


def test_a_vocabulary_without_the_initial_token_is_refused(tokenizer: WordTokenizer) -> None:
    with pytest.raises(ValueError, match="folder: no token 'euro' in the vocabulary"):
        add_word_markers(LukeModel(TINY), tokenizer, {"[HEAD]": "euro"}, "folder")


def features_for(task: MarkedTask, count: int) -> list:
    generator = np.random.default_rng(4)
    features = []
    for number in range(count):
        word_ids = generator.integers(5, TINY.vocab_size, size=20 + 3 * number)
        ends = np.array([[1 + number, 4 + 2 * number], [9, 10 + number]])[: len(task.ENTITIES)]
        features.append(MarkedFeature(word_ids, ends, np.array(0)))
    return features


@pytest.mark.parametrize("task", [entity_typing.TASK, relation_classification.TASK])
def test_the_baseline_sees_the_opening_markers(task: MarkedTask) -> None:
    torch.manual_seed(1)
    module = task.head(LukeModel(TINY), 3, entities=False).eval()
    features = features_for(task, 3)
    batch = task.collate(features, entities=False)
    assert batch.inputs.shape.entities == 0
    with torch.inference_mode():
        states = module.luke(batch.inputs).split([len(feature.word_ids) for feature in features])
        wanted = torch.stack(
            [
                torch.cat([own[first] for first in feature.ends[:, 0]])
                for own, feature in zip(states, features, strict=True)
            ]
        )
        assert torch.allclose(module(batch), module.classifier(wanted), atol=1e-6)
