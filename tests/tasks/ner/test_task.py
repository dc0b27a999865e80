"""Entity recognition: features of real sentences, the head against transformers, decoding and scoring."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from model.luke.config import LukeConfig
from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.ner import task
from tasks.ner.columns import ColumnFile
from tasks.ner.spans import Span, enumerate_spans
from tasks.task import Features, InputSettings, Outputs
from tests.support import ROOT
from tests.support.properties import given, st

EXAMPLES = ROOT / "examples" / "ner"
TINY = LukeConfig(vocab_size=600, entity_vocab_size=5, hidden_size=16, entity_emb_size=8, num_hidden_layers=2,
                  num_attention_heads=2, intermediate_size=32, max_position_embeddings=66)  # fmt: skip


def column_file(tmp_path: Path, documents: list[list[list[tuple[str, str]]]]) -> ColumnFile:
    lines = []
    for sentences in documents:
        lines += ["-DOCSTART- O", ""]
        for sentence in sentences:
            lines += [*(f"{word} {tag}" for word, tag in sentence), ""]
    path = tmp_path / "data.txt"
    path.write_text("\n".join(lines))
    return task.TASK.read(path)


def words(text: str, start: int = 0) -> list[tuple[str, str]]:
    return [(word, "O") for word in text.split()][start:]


def featurize(
    dataset: ColumnFile, tokenizer: WordTokenizer, *, max_words: int = 64, profile: str = "fixed"
) -> Features:
    labels = task.TASK.label_names({"train": dataset})
    return task.TASK.featurize(dataset, InputSettings(tokenizer, labels, {}, max_words, profile))


def test_without_document_lines_a_sentence_has_no_context(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    (tmp_path / "flat.txt").write_text("Ada I-PER\n\nBob I-PER\n")
    features = featurize(task.TASK.read(tmp_path / "flat.txt"), tokenizer)
    assert [tokenizer.decode(f.word_ids[1:-1].tolist()).strip() for f in features.items] == ["Ada", "Bob"]


def test_a_sentence_longer_than_the_model_is_read_in_parts(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    sentence = [(",", "O")] * 7 + [(",", "I-PER")] * 2 + [(",", "O")] * 5 + [(",", "I-LOC")] * 3 + [(",", "O")] * 3
    dataset = column_file(tmp_path, [[sentence, [("." * 100, "O")]]])
    features = featurize(dataset, tokenizer, max_words=10)
    first = [feature for feature in features.items if feature.sentence == 0]
    assert [(f.spans.min(), f.spans.max()) for f in first] == [(0, 8), (8, 16), (16, 20)]
    assert all(len(feature.word_ids) <= 10 for feature in features.items)
    assert features.counts == {
        "sentences_split": 1, "words_cut": 1, "words_without_subwords": 0,
        "passes": 4, "spans": 36 + 36 + 10 + 1,
        "spans_with_positions_cut": 0, "entities_out_of_reach": 2, "entities_of_unknown_type": 0,
    }  # fmt: skip


def test_long_and_unknown_entities_are_counted_misses(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    sentence = [("a", "I-PER")] * 17 + [("b", "O")] + [("c", "I-LOC")] * 16
    dataset = column_file(tmp_path, [[sentence]])
    features = task.TASK.featurize(dataset, InputSettings(tokenizer, ("O", "PER"), {}, 512, "fixed"))
    assert features.counts["entities_out_of_reach"] == features.counts["entities_of_unknown_type"] == 1
    assert all(not feature.labels.any() for feature in features.items)
    everything = [np.eye(2)[np.zeros(len(feature.spans), dtype=int)] for feature in features.items]
    scores = task.TASK.score(dataset, task.TASK.decode(Outputs(dataset, features.items, everything, ("O", "PER"))))
    assert (scores["gold"], scores["predicted"], scores["types"]["PER"]["gold"]) == (2, 0, 1)


def test_paper_profile_counts_subwords(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    dataset = column_file(tmp_path, [[[("q" * 9, "O"), ("x" * 9, "I-PER"), (".", "O")]]])
    lengths = [len(subwords) for subwords in tokenizer.encode(["q" * 9, "x" * 9, "."], [True, True, False])]
    assert sum(lengths[:2]) > 16 >= lengths[1] + lengths[2]
    found = {
        profile: featurize(dataset, tokenizer, profile=profile).items[0].spans.tolist()
        for profile in ("fixed", "paper")
    }
    assert found["fixed"] == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert found["paper"] == [[0, 1], [1, 2], [1, 3], [2, 3]]


@given(
    st.lists(st.lists(st.integers(1, 24), min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(12, 66),
    st.integers(1, 40),
)
def test_passes_cover_each_span_once_within_the_document_and_hold_the_sentence(
    tmp_path_factory: pytest.TempPathFactory,
    tokenizer: WordTokenizer,
    documents: list[list[int]],
    max_words: int,
    max_spans: int,
) -> None:
    """Every document is of one mark, a token each; sentences that the model cannot hold are covered in parts."""
    text = [[[(mark, "O")] * length for length in lengths] for mark, lengths in zip(",.;", documents, strict=False)]
    text[0][0][0] = (",", "I-PER")
    dataset = column_file(tmp_path_factory.mktemp("data"), text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "MAX_SPANS", max_spans)
        items = featurize(dataset, tokenizer, max_words=max_words).items
    marks = [mark for mark, lengths in zip(",.;", documents, strict=False) for _ in lengths]
    room = max_words - 2
    for index, sentence in enumerate(dataset.sentences):
        passes = [item for item in items if item.sentence == index]
        length = len(sentence.words)
        pieces = [(start, min(start + room, length)) for start in range(0, length, room)]
        wanted = [(start, end) for start, end in enumerate_spans(length, 16)]
        covered = [pair for pair in wanted if any(a <= pair[0] and pair[1] <= b for a, b in pieces)]
        assert sorted(tuple(span) for item in passes for span in item.spans.tolist()) == covered
        document = sum(len(other.words) for other, mark in zip(dataset.sentences, marks, strict=True)
                       if mark == marks[index])  # fmt: skip
        for item in passes:
            assert len(item.spans) <= max_spans
            assert len(item.word_ids) == min(document, room) + 2
            assert set(tokenizer.decode(item.word_ids[1:-1].tolist())) == {marks[index]}
            assert 1 <= item.ends.min() <= item.ends.max() <= len(item.word_ids) - 1


@given(st.integers(1, 9), st.integers(1, 12), st.randoms(use_true_random=False))
def test_decoding_of_all_passes_equals_brute_force(
    tmp_path_factory: pytest.TempPathFactory, tokenizer: WordTokenizer, length: int, max_spans: int, random: Random
) -> None:
    """The best span of all that are left (the leftmost of equals), again and again, by random logits."""
    dataset = column_file(tmp_path_factory.mktemp("data"), [[[("a", "I-PER")] * length, words("b")]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "MAX_SPANS", max_spans)
        items = featurize(dataset, tokenizer).items
    labels = ("O", "LOC", "PER")
    logits = [np.array([[random.random() for _ in labels] for _ in item.spans]) for item in items]
    left = [
        (max(scores), Span(*span, labels[list(scores).index(max(scores))]))
        for item, rows in zip(items, logits, strict=True)
        for span, scores in zip(item.spans.tolist(), rows.tolist(), strict=True)
        if item.sentence == 0 and max(scores) > scores[0]
    ]
    chosen = []
    while left:
        _, best = min(left, key=lambda pair: (-pair[0], pair[1]))
        chosen.append(best)
        left = [(score, span) for score, span in left if span.end <= best.start or best.end <= span.start]
    assert task.TASK.decode(Outputs(dataset, items, logits, labels))[0] == sorted(chosen)


def test_without_entities_passes_over_the_same_words_share_them(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    """Three sentences of a document that the model holds whole, and one of another; 17 words are two passes."""
    torch.manual_seed(4)
    module = task.TASK.head(LukeModel(TINY), 5, entities=False).eval()
    sentences = [words(", " * length) for length in (2, 17, 3)]
    sentences[0][0] = (",", "I-PER")
    features = featurize(column_file(tmp_path, [sentences, [words(". .")]]), tokenizer).items
    batch = task.TASK.collate(features, entities=False)
    lengths = [len(feature.word_ids) for feature in features]
    assert batch.inputs.shape.lengths == ((lengths[0], 0), (lengths[-1], 0))
    assert len(task.TASK.collate(features, entities=True).inputs.shape.lengths) == 5
    with torch.inference_mode():
        together = task.TASK.logits(module, batch)
        alone = [task.TASK.logits(module, task.TASK.collate([f], entities=False))[0] for f in features]
    for one, other in zip(together, alone, strict=True):
        assert np.abs(one - other).max() < 1e-5


def test_mentions_of_a_batch_are_cut(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    dataset = column_file(tmp_path, [[[("z" * 40, "I-PER"), (",", "O")]], [words(",")]])
    features = featurize(dataset, tokenizer)
    first, second = (len(feature.word_ids) for feature in features.items)
    batch = task.TASK.collate(features.items, entities=True)
    assert features.counts["spans_with_positions_cut"] == 2
    assert batch.sizes == (3, 1)
    assert batch.inputs.shape.lengths == ((first, 3), (second, 1))
    assert batch.inputs.entity_ids.tolist() == [1, 1, 1, 1]
    assert batch.inputs.mention_starts.tolist() == [1, 1, first - 2, 1]
    assert batch.inputs.mention_lengths.tolist() == [30, 30, 1, 1]
    entities = first + second
    assert batch.places[0].tolist() == [1, first - 3, entities]
    assert batch.places[3].tolist() == [first + 1, first + 1, entities + 3]
    assert batch.labels.tolist() == [1, 0, 0, 0]
    assert task.TASK.collate(features.items, entities=False).inputs.shape.entities == 0
