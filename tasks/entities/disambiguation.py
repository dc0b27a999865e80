"""Which of its candidates a mention stands for, by a pretrained model: its masked entity at the mention's place.

The score of a candidate is the entity head's logit, plus the weighted logarithm of its prior. Locally all mentions are
masked, and answered at once. Globally (Yamada et al., "Global Entity Disambiguation with BERT", NAACL 2022) the
mention of which the model is most certain is answered first, its entity is put in for the mask, and the others are
scored again, one mention after the other.

A candidate that the model does not know gets the mean logit of the mention's others, so that its prior alone speaks.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from model.data.collation import collate
from model.data.masking import MaskedSequence
from model.exchange.load import entity_vocabulary, is_ours
from model.files import CONFIG
from model.luke.batch import IGNORED
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.pretraining.evaluation import read_pretrained
from model.pretraining.loader import cut_by_tokens
from model.pretraining.ranking import candidate_logits
from model.training.loop import resolve_device
from pipeline.lookup.entities import MASK, SECOND_MASK
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.storage.files import digest
from tasks.entities.annotations import check_same_entities
from tasks.entities.candidates import Asked, Candidate
from tasks.io.windows import token_spans, windows
from tasks.task import MAX_MENTION_POSITIONS

TOKENS_PER_BATCH = 2048
UNKNOWN = -1  # the row of a candidate that the model does not know
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class EntityModel:
    """A pretrained model, its tokenizer, and the row of its entity table that each candidate has, or UNKNOWN."""

    module: LukeForPretraining
    tokenizer: WordTokenizer
    row_of: Callable[[Candidate], int]
    mask_row: int
    device: str
    tokens_per_batch: int = TOKENS_PER_BATCH

    @property
    def room(self) -> int:
        """How many tokens of a text an input can have."""
        return self.module.config.max_words - 2


# Loading


def load_model(
    folder: Path, table: MentionTable, tokenizer: WordTokenizer, *, device: str = "auto"
) -> EntityModel:
    """The model of a folder of Pretrain or ExportHuggingFace, or of transformers' LukeForMaskedLM.

    The latter two tell the titles of their entities (`entity_vocab.json`), by which these are the table's. Raises:
    ValueError for another folder, and where model, tokenizer and table do not fit together.
    """
    vocabulary = read_titles(folder)
    module = read_pretrained(folder)
    if tokenizer.vocab_size > module.config.vocab_size:
        raise ValueError(
            f"{folder}: the model has {module.config.vocab_size:,} words, the tokenizer {tokenizer.vocab_size:,}; "
            "give the model's own tokenizer"
        )
    size = module.config.entity_vocab_size
    mask_row = MASK_ENTITY
    if vocabulary:
        row_of, mask_row = rows_by_title(vocabulary, table, size, str(folder)), vocabulary[MASK]
    else:
        check_same_entities(Path(table.folder), folder)
        row_of = rows_by_id(table, size, str(folder))
    chosen = str(resolve_device(device))
    return EntityModel(module.to(chosen).eval(), tokenizer, row_of, mask_row, chosen)


def model_folder(folder: Path) -> Path:
    """Where the model is: the folder itself or, in that of ExportHuggingFace, `model`."""
    inner = folder / "model"
    return inner if (inner / CONFIG).is_file() and not (folder / CONFIG).is_file() else folder


def read_titles(folder: Path) -> dict[str, int]:
    """The rows of a model's entities by their titles; empty for a model of ours. Raises: ValueError for neither."""
    vocabulary = entity_vocabulary(str(folder)) if folder.is_dir() else {}
    if not vocabulary and not is_ours(folder):
        raise ValueError(f"{folder}: neither a folder of Pretrain nor a LUKE with its entity_vocab.json")
    return vocabulary


def rows_by_id(table: MentionTable, size: int, source: str) -> Callable[[Candidate], int]:
    """The rows of a model whose entities are the table's. Raises: ValueError where it has not as many."""
    if size != table.manifest.facts["entities"]:
        raise ValueError(
            f"{source}: the model has {size:,} entities, the vocabulary of {table.folder} "
            f"{table.manifest.facts['entities']:,}; give the mention table of the model's run"
        )
    return lambda candidate: UNKNOWN if candidate.entity_id is None else candidate.entity_id


def rows_by_title(
    vocabulary: dict[str, int], table: MentionTable, size: int, source: str
) -> Callable[[Candidate], int]:
    """The rows of a model whose entities have these titles, which may be redirects in the table's dump.

    Raises: ValueError for a vocabulary without [MASK], of special entities alone, or of more rows than the model's, and
    where the dump has none of the titles.
    """
    titles = sorted((row, title) for title, row in vocabulary.items() if title != SECOND_MASK)
    if MASK not in vocabulary or len(titles) <= SPECIAL_ENTITIES or titles[-1][0] >= size:
        raise ValueError(
            f"{source}: entity_vocab.json has {len(titles):,} entities, the model {size:,} rows; wanted {MASK} among "
            "them, titles of pages, and a row for each"
        )
    if digest([title for _, title in titles]) == table.manifest.facts["entities_sha256"]:
        return rows_by_id(table, len(titles), source)
    found = [(row, target.title) for row, title in titles if (target := table.targets.get(title))]
    if not found:
        raise ValueError(
            f"{source}: entity_vocab.json has none of the titles of {table.folder}; wanted a model of the same language"
        )
    rows = {title: row for row, title in reversed(found)}  # of several redirects the commonest
    rows |= {title: row for row, title in titles}  # before one that is a redirect to it
    return lambda candidate: rows.get(candidate.title, UNKNOWN)


# Input


@dataclass(eq=False)
class Question:
    """A mention with several candidates, or a single one, until it is answered.

    Attributes:
        tokens: its tokens in the document, half open.
        rows: of its candidates in the model's entity table.
        log_prior: of its candidates.
        shares: the probability of each candidate, once it is scored.
        row: the entity that is put in for the mask, once that is decided.
    """

    tokens: tuple[int, int]
    rows: Integers
    log_prior: Floats
    shares: Floats | None = None
    row: int = UNKNOWN


@dataclass(eq=False)
class Window:
    """A part of a document: its tokens, the mentions inside, and those of them that are answered here."""

    start: int
    end: int
    word_ids: Integers
    inside: list[Question] = field(default_factory=list)
    own: list[Question] = field(default_factory=list)

    def masked(self, mask_row: int) -> MaskedSequence:
        """The input: entities at all mentions inside, of which those without an answer are asked for."""
        places = np.array([each.tokens for each in self.inside], np.int64) - self.start + 1
        open_ = set(map(id, self.open()))
        return MaskedSequence(
            word_ids=self.word_ids,
            word_labels=np.full(len(self.word_ids), IGNORED),
            entity_ids=np.array([mask_row if each.row < 0 else each.row for each in self.inside], np.int64),
            entity_labels=np.array([mask_row if id(each) in open_ else IGNORED for each in self.inside]),
            entity_starts=places[:, 0],
            entity_ends=np.minimum(places[:, 1], len(self.word_ids) - 1),
        )

    def open(self) -> list[Question]:
        """Its own mentions that are not answered, in the order in which they are inside."""
        return [each for each in self.own if each.shares is None]

    def size(self) -> int:
        return len(self.word_ids) + len(self.inside)


def questions_of(model: EntityModel, asked: Asked) -> tuple[list[Question | None], list[Window]]:
    """A question for each mention (None: without candidates or tokens), and the windows that answer them.

    Each mention is answered in the window that has most context on its shorter side. Windows overlap by a quarter.
    """
    ids, characters = model.tokenizer.encode_with_offsets(asked.text)
    spans = np.array([(each.start, each.end) for each in asked.mentions], np.int64).reshape(-1, 2)
    tokens = token_spans(np.array(characters, np.int64).reshape(-1, 2), spans)
    questions = [
        question(model, (int(first), int(last)), each.items) if each.items and first < last else None
        for (first, last), each in zip(tokens, asked.candidates, strict=True)
    ]
    ends = windows(len(ids), model.room, max(1, model.room - model.room // 4))
    special = model.tokenizer.cls_id, model.tokenizer.sep_id
    found = [
        Window(start, end, np.array([special[0], *ids[start:end], special[1]], np.int64))
        for start, end in ends
    ]
    starts = [window.start for window in found]
    for each in filter(None, questions):
        first = each.tokens[0]
        near = found[bisect_right(starts, first - model.room) : bisect_right(starts, first)]
        own = max(near, key=lambda window: context(window, each.tokens))
        own.own.append(each)
        for window in near:
            if window is own or each.tokens[1] <= window.end:
                window.inside.append(each)
    return questions, [window for window in found if window.own]


def context(window: Window, tokens: tuple[int, int]) -> tuple[int, int]:
    """How good a window is that has a mention's first token: tokens on the shorter side, and its length.

    A mention that no window has as a whole is cut at the end of the one that has most of it.
    """
    return min(tokens[0] - window.start, window.end - tokens[1]), window.end - window.start


def question(model: EntityModel, tokens: tuple[int, int], candidates: Sequence[Candidate]) -> Question:
    """A mention's question."""
    rows = np.array([model.row_of(each) for each in candidates], np.int64)
    return Question(tokens, rows, np.log([each.prior for each in candidates]))


# Answers


def disambiguate(
    model: EntityModel, documents: Sequence[Asked], *, is_global: bool = True, prior_weight: float = 1.0
) -> list[list[Floats | None]]:
    """The probability of each candidate of each mention; None for a mention that has no candidates, or no tokens."""
    found = [questions_of(model, each) for each in documents]
    for each in (each for questions, _ in found for each in questions if each):
        if len(each.rows) == 1 or (each.rows < 0).all():  # what the model says changes nothing
            answer(each, None, prior_weight, put_in=is_global)
    pending = [window for _, several in found for window in several if window.open()]
    while pending:
        # All of them before the first answer, so that it does not matter what is computed at once.
        for window, logits in list(scored(model, pending)):
            shares = [
                probabilities(each, scores, prior_weight)
                for each, scores in zip(window.open(), logits, strict=True)
            ]
            surest = int(np.argmax([each.max() for each in shares]))
            for number, each in enumerate(window.open()):
                if not is_global or number == surest:
                    answer(each, logits[number], prior_weight, put_in=is_global)
        pending = [window for window in pending if window.open()]
    return [[each.shares if each else None for each in questions] for questions, _ in found]


@torch.inference_mode()
def scored(model: EntityModel, pending: Sequence[Window]) -> Iterator[tuple[Window, list[Floats]]]:
    """For each window the logits of its open mentions' known candidates."""
    head, table = model.module.heads[ENTITY_LOSS]
    for part in cut_by_tokens(pending, Window.size, model.tokens_per_batch):
        sequences = [window.masked(model.mask_row) for window in part]
        batch = collate(sequences, max_mention_words=MAX_MENTION_POSITIONS, entities=True)
        batch.check(model.module.config)
        states, _ = model.module.asked(batch.to(model.device))[ENTITY_LOSS]
        rows = [each.rows[each.rows >= 0] for window in part for each in window.open()]
        logits = iter(candidate_logits(head, states, table.weight, rows))
        for window in part:
            yield window, [next(logits) for _ in window.open()]


def probabilities(asked: Question, logits: Floats | None, prior_weight: float) -> Floats:
    """The softmax of the candidates' scores; `logits` are those of the known ones, in their order."""
    scores = prior_weight * asked.log_prior
    if logits is not None:
        is_known = asked.rows >= 0
        scores = scores + np.where(is_known, 0.0, logits.mean())
        scores[is_known] += logits
    shares = np.exp(scores - scores.max())
    total: Floats = shares / shares.sum()
    return total


def answer(asked: Question, logits: Floats | None, prior_weight: float, *, put_in: bool) -> None:
    """Settle a mention; with `put_in` its entity goes into the inputs that follow, where the model knows it."""
    asked.shares = probabilities(asked, logits, prior_weight)
    if put_in:
        asked.row = int(asked.rows[int(asked.shares.argmax())])
