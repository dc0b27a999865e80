"""Disambiguation by a model, beside loops around transformers' LukeForMaskedLM with the same random weights."""

import json
import math
import platform
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
import transformers
from sklearn.linear_model import Ridge

from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer, copy_tokenizer
from tasks.linking.candidates import Candidate, Candidates, LinkingExample
from tasks.linking.certainty import Certainty
from tasks.linking.documents.document import Mention
from tasks.linking.guesses import EXACT
from tasks.linking.model import answers
from tasks.linking.model.answers import MaskedMention, disambiguate
from tasks.linking.model.entity_model import EntityModel, load_model
from tests.support.manifests import write_manifest
from tests.support.models import TINY, luke_of_transformers, save_tied, shake
from tests.support.properties import given, settings, st

# Rows of the model's entity table. "To a" is a redirect to A in the dump; "B" is one that the table's vocabulary lacks.
VOCABULARY = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "To a": 3, "B": 4, "C": 5, "E": 6, "[MASK2]": 7}
OUTSIDE = ("unknown", "none")  # titles that it does not know
ROWS = {"A": 3, "B": 4, "C": 5, "E": 6}
TEXT = "Ann met Bob, Cat and Dan at the sea. " * 12
WIDTH = 37  # of a sentence of the text


@pytest.fixture(scope="module")
def mentions(table: Path) -> MentionTable:
    return MentionTable(str(table))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """A LukeForMaskedLM of transformers with its entity vocabulary and RoBERTa's tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    sizes = {"vocab_size": 50265, "entity_vocab_size": len(VOCABULARY)}
    save_tied(luke_of_transformers("LukeForMaskedLM", **sizes), folder)
    (folder / "entity_vocab.json").write_text(json.dumps(VOCABULARY))
    copy_tokenizer(shared / "data/roberta-tokenizer", folder)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path, mentions: MentionTable) -> EntityModel:
    return load_model(folder, mentions, WordTokenizer.load(folder), device="cpu")


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return transformers.LukeForMaskedLM.from_pretrained(folder).eval()


Place = tuple[int, int]


def rows_of_titles(theirs: Any, words: WordTokenizer) -> dict[str, tuple[np.ndarray, float]]:
    """For titles that the model does not know the row of its table, and the bias; by scikit-learn's ridge regression.

    The rarer half of the known entities, C and E, tell what a title's words say.
    """
    table = theirs.luke.embeddings.word_embeddings.weight.detach().double().numpy()

    def vector(title: str) -> np.ndarray:
        ids = words.encode([title], [True])[0]  # no title of these has more than a name
        return 1.3 * (table[ids].mean(axis=0) - table.mean(axis=0))

    given = np.stack([vector(title) for title in ("C", "E")])
    rows = theirs.luke.entity_embeddings.entity_embeddings.weight.detach().double().numpy()
    biases = theirs.entity_predictions.bias.detach().double().numpy()
    wanted = np.column_stack([rows[[5, 6]], biases[[5, 6]]])
    centred = given - given.mean(axis=0)
    found = Ridge(alpha=0.01 * (centred**2).sum(axis=0).mean()).fit(given, wanted)
    told = found.predict(np.stack([vector(title) for title in OUTSIDE]))
    return {title: (row[:-1], float(row[-1])) for title, row in zip(OUTSIDE, told, strict=True)}


class ByForce:
    """The algorithm in loops: an input of transformers for each window, in which the whole vocabulary is scored."""

    def __init__(self, theirs: Any, model: EntityModel, example: LinkingExample, certainty: Certainty) -> None:
        self.theirs, self.certainty, self.example = theirs, certainty, example
        self.of_title = rows_of_titles(theirs, model.tokenizer)
        ids, places = model.tokenizer.encode_with_offsets(example.text)
        self.ids = ids
        self.cls, self.sep = model.tokenizer.cls_id, model.tokenizer.sep_id
        self.candidates = [each.items for each in example.candidates]
        self.tokens: list[Place | None] = []
        for mention in example.mentions:
            covered = [n for n, (start, end) in enumerate(places) if start < mention.end and mention.start < end]
            self.tokens.append((covered[0], covered[-1] + 1) if covered else None)
        room = model.room
        self.windows = [(0, min(room, len(ids)))]
        while self.windows[-1][1] < len(ids):
            start = self.windows[-1][0] + room - room // 4
            self.windows.append((start, min(start + room, len(ids))))
        self.numbers = [n for n, items in enumerate(self.candidates) if items and self.tokens[n]]
        self.window_of = {n: self.best_window(*self.at(n)) for n in self.numbers}
        self.shares: dict[int, np.ndarray] = {}
        self.fills_mask: dict[int, int] = {}

    def at(self, number: int) -> Place:
        place = self.tokens[number]
        assert place is not None
        return place

    def best_window(self, first: int, end: int) -> Place:
        """The first of those with most tokens on the shorter side; the longest of equals."""
        holding = [w for w in self.windows if w[0] <= first < w[1]]
        return max(holding, key=lambda w: (min(first - w[0], w[1] - end), w[1] - w[0]))

    def rows(self, number: int) -> list[int | None]:
        return [ROWS.get(each.title) for each in self.candidates[number]]

    @torch.no_grad()
    def logits(self, window: Place) -> dict[int, np.ndarray]:
        """The entity logits at all mentions of a window: of the vocabulary, and behind it of OUTSIDE."""
        start, end = window
        inside = [
            n for n in self.numbers if self.window_of[n] == window or (start <= self.at(n)[0] and self.at(n)[1] <= end)
        ]
        positions = torch.full((1, len(inside), 30), -1)
        for row, n in enumerate(inside):
            first, last = self.at(n)
            covered = list(range(first - start + 1, min(last, end) - start + 1))[:30]
            positions[0, row, : len(covered)] = torch.tensor(covered)
        words = torch.tensor([[self.cls, *self.ids[start:end], self.sep]])
        entities = torch.tensor([[self.fills_mask.get(n, VOCABULARY["[MASK]"]) for n in inside]])
        found = self.theirs(
            input_ids=words,
            attention_mask=torch.ones_like(words),
            entity_ids=entities,
            entity_attention_mask=torch.ones_like(entities),
            entity_position_ids=positions,
            output_hidden_states=True,
        )
        hidden = self.theirs.entity_predictions.transform(found.entity_hidden_states[-1][0]).double().numpy()
        of_titles = [[vector @ own + bias for vector, bias in self.of_title.values()] for own in hidden]
        of_known = found.entity_logits[0].double().numpy()
        return {n: np.append(of_known[row], of_titles[row]) for row, n in enumerate(inside)}

    def softmax(self, number: int, logits: np.ndarray | None) -> np.ndarray:
        scores = []
        for place, each in enumerate(self.candidates[number]):
            score = math.log(each.prior)
            if self.example.contexts:
                score += self.certainty.context_weight * self.example.contexts[number][place]
            if self.example.coherence:
                score += self.certainty.coherence_weight * self.example.coherence[number][place]
            score *= self.certainty.prior_weight
            row = ROWS.get(each.title)
            if logits is not None:
                behind = len(VOCABULARY) + [*self.of_title].index(each.title) if row is None else row
                score += logits[behind] + (self.certainty.unknown_offset if row is None else 0.0)
            scores.append(score)
        shares = np.exp(scores)
        return shares / shares.sum()

    def run(self, *, is_global: bool) -> list[np.ndarray | None]:
        for n in self.numbers:
            if len(self.candidates[n]) == 1:
                self.settle(n, self.softmax(n, None), is_global=is_global)
        while still := [n for n in self.numbers if n not in self.shares]:
            settled = {}
            for window in self.windows:
                own = [n for n in still if self.window_of[n] == window]
                if own:
                    logits = self.logits(window)
                    found = {n: self.softmax(n, logits[n]) for n in own}
                    surest = max(own, key=lambda n: found[n].max())
                    settled.update({n: found[n] for n in own if not is_global or n == surest})
            for n, shares in settled.items():
                self.settle(n, shares, is_global=is_global)
        return [self.shares.get(n) for n in range(len(self.candidates))]

    def settle(self, number: int, shares: np.ndarray, *, is_global: bool) -> None:
        self.shares[number] = shares
        row = self.rows(number)[int(shares.argmax())]
        if is_global and row is not None:
            self.fills_mask[number] = row


def candidates(*titles: str) -> Candidates:
    """Of falling priors."""
    total = sum(range(1, len(titles) + 1))
    items = [Candidate(title, None, (len(titles) - n) / total) for n, title in enumerate(titles)]
    return Candidates(EXACT, tuple(items))


def agree(found: list[MaskedMention | None], expected: list[np.ndarray | None]) -> None:
    shares = [each and each.shares for each in found]
    assert [each is None for each in shares] == [each is None for each in expected]
    for one, other in zip(shares, expected, strict=True):
        if one is not None and other is not None:
            np.testing.assert_allclose(one, other, atol=1e-4)


SEVERAL = st.lists(st.sampled_from(["A", "B", "C", "E", "unknown", "none"]), max_size=4, unique=True)
NAMES = st.tuples(st.integers(0, 11), st.sampled_from([(0, 3), (8, 11), (13, 16), (21, 24), (8, 24), (3, 4), (0, 150)]))


@settings(max_examples=25)
@given(
    st.dictionaries(NAMES, SEVERAL, min_size=1, max_size=9),
    st.booleans(),
    st.builds(
        Certainty,
        prior_weight=st.sampled_from([0.0, 0.5, 1.0]),
        context_weight=st.just(2.0),
        coherence_weight=st.just(3.0),
        unknown_offset=st.sampled_from([-1.0, 0.0]),
    ),
    st.booleans(),
    st.sampled_from([1, 60, 4096]),
)
def test_probabilities_are_those_of_loops_around_transformers(
    model: EntityModel,
    theirs: Any,
    names: dict[tuple[int, Place], list[str]],
    is_global: bool,
    certainty: Certainty,
    has_contexts: bool,
    tokens: int,
) -> None:
    """Texts of 12 sentences have a dozen windows; a mention may hold others, a blank, or more than a window."""
    mentions = [Mention(WIDTH * n + start, min(WIDTH * n + end, len(TEXT))) for n, (start, end) in sorted(names)]
    example = LinkingExample(TEXT, mentions, [candidates(*names[key]) for key in sorted(names)])
    if has_contexts:
        sizes = [np.arange(len(each.items)) for each in example.candidates]
        example = example._replace(contexts=[*map(np.cos, sizes)], coherence=[*map(np.sin, sizes)])
    expected = ByForce(theirs, model, example, certainty).run(is_global=is_global)
    # What is computed at once, and beside which other document, changes nothing.
    other = LinkingExample(
        "Ann met Bob.", [Mention(0, 3), Mention(8, 11)], [candidates("A", "B"), candidates("C", "E")]
    )
    found = disambiguate(
        replace(model, tokens_per_batch=tokens), [other, example], is_global=is_global, certainty=certainty
    )
    agree(found[1], expected)
    agree(found[0], ByForce(theirs, model, other, certainty).run(is_global=is_global))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="another processor's products may round by their size")
@pytest.mark.parametrize("is_global", [False, True])
def test_no_digit_depends_on_what_is_computed_at_once(model: EntityModel, is_global: bool) -> None:
    """A text alone has few rows in each product."""
    documents = [
        LinkingExample(text, [Mention(0, 3)], [candidates("A", "B", "C")])
        for text in ("Ann", "Ann met", "Ann met Bob.", *(TEXT[size:] for size in range(0, len(TEXT), 7)))
    ]
    together = disambiguate(model, documents, is_global=is_global)
    for document, [found] in zip(documents, together, strict=True):
        [[alone]] = disambiguate(model, [document], is_global=is_global)
        assert found
        assert alone
        assert np.array_equal(found.shares, alone.shares)


def test_a_crowded_window_is_answered_in_parts(model: EntityModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part is answered as if the document had no other mentions."""
    monkeypatch.setattr(answers, "MOST_INSIDE", 2)
    mentions = [Mention(*place) for place in ((0, 3), (8, 11), (4, 7), (0, 7), (4, 11))]

    def answered(chosen: list[Mention]) -> list[MaskedMention | None]:
        example = LinkingExample("Ann met Bob.", chosen, [candidates("A", "B")] * len(chosen))
        return disambiguate(model, [example], is_global=False)[0]

    parts = [*answered(mentions[:2]), *answered(mentions[2:4]), *answered(mentions[4:])]
    agree(answered(mentions), [each and each.shares for each in parts])


def test_windows_of_one_pass_do_not_see_each_others_answers(model: EntityModel, theirs: Any) -> None:
    """Mentions where windows overlap: what is answered in one is put into the other, but in the next pass."""
    places = [WIDTH * n + start for n in range(12) for start in (0, 8)]
    mentions = [Mention(start, start + 3) for start in places]
    example = LinkingExample(TEXT, mentions, [candidates("B", "C", "E")] * len(mentions))
    expected = ByForce(theirs, model, example, Certainty()).run(is_global=True)
    for tokens in (1, 4096):
        [found] = disambiguate(replace(model, tokens_per_batch=tokens), [example], is_global=True)
        agree(found, expected)


def test_our_own_folder_answers_as_its_ids_say(tmp_path: Path, folder: Path, mentions: MentionTable) -> None:
    """The table has four entities; A is 3."""
    torch.manual_seed(1)
    module = shake(LukeForPretraining(replace(TINY, vocab_size=50265, entity_vocab_size=4))).eval()
    save_model(tmp_path / "ours", module)
    words = WordTokenizer.load(folder)
    ours = load_model(tmp_path / "ours", mentions, words, device="cpu")
    assert [ours.row_of(Candidate("x", number, 1.0)) for number in (3, None)] == [3, -1]
    save_model(tmp_path / "larger", LukeForPretraining(replace(TINY, vocab_size=50265, entity_vocab_size=9)))
    with pytest.raises(ValueError, match=r"larger: the model has 9 entities, the vocabulary of .* 4; give"):
        load_model(tmp_path / "larger", mentions, words)
    save_model(tmp_path / "fewer_words", LukeForPretraining(TINY))
    with pytest.raises(ValueError, match=r"the model has 60 words, the tokenizer 50,265; give the model's"):
        load_model(tmp_path / "fewer_words", mentions, words)
    inputs = {"BuildMentionTable": "0" * 64, "BuildSequences": ""}
    write_manifest(tmp_path / "ours", "Pretrain", inputs=inputs)
    with pytest.raises(ValueError, match=r"not the mention table beside which .* was pretrained"):
        load_model(tmp_path / "ours", mentions, words)


def test_titles_of_another_vocabulary_go_through_redirects(model: EntityModel) -> None:
    rows = [model.row_of(Candidate(title, 7, 1.0)) for title in ("A", "B", "C", "D")]
    assert rows == [3, 4, 5, -1]
    assert model.mask_row == 2


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        ({"[PAD]": 0, "[UNK]": 1, "A": 2, "B": 3}, r"wanted \[MASK\] among them"),
        ({"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}, "has 3 entities, the model 8 rows"),
        ({**VOCABULARY, "F": 99}, "has 8 entities, the model 8 rows; .* a row for each"),
        ({"[MASK]": 0, "[PAD]": 1, "[UNK]": 2, "de:A": 3}, "has none of the titles of .* of the same language"),
        ({}, "neither a folder of Pretrain nor a LUKE with its entity_vocab.json"),
    ],
)  # fmt: skip
def test_vocabularies_that_do_not_fit_are_refused(
    tmp_path: Path, folder: Path, mentions: MentionTable, vocabulary: dict[str, int], message: str
) -> None:
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model/entity_vocab.json").write_text(json.dumps(vocabulary))
    with pytest.raises(ValueError, match=rf"model: .*{message}"):
        load_model(tmp_path / "model", mentions, WordTokenizer.load(folder))


def test_titles_of_several_languages_are_those_of_the_tables(
    tmp_path: Path, folder: Path, mentions: MentionTable
) -> None:
    """As mLUKE has them, with a language before each."""
    shutil.copytree(folder, tmp_path / "model")
    names = {"[MASK]": 2, "[PAD]": 0, "[UNK]": 1, "de:B": 3, "en:B": 4, "en:A": 3, "de:A": 5, "[MASK2]": 6}
    (tmp_path / "model/entity_vocab.json").write_text(json.dumps(names))
    model = load_model(tmp_path / "model", mentions, WordTokenizer.load(folder))
    assert [model.row_of(Candidate(title, 7, 1.0)) for title in ("A", "B")] == [3, 4]
    assert model.mask_row == 2


def test_an_export_of_the_tables_own_vocabulary_has_its_ids(
    tmp_path: Path, folder: Path, mentions: MentionTable
) -> None:
    shutil.copytree(folder, tmp_path / "model")
    names = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "A": 3, "[MASK2]": 4}
    (tmp_path / "model/entity_vocab.json").write_text(json.dumps(names))
    found = load_model(tmp_path / "model", mentions, WordTokenizer.load(folder), device="cpu")
    assert [found.row_of(Candidate("another title", number, 1.0)) for number in (3, None)] == [3, -1]
