"""A pretrained model that is asked for entities: its folder, and its entities for the titles of a mention table.

Pages that it does not know have rows as their titles tell them. A title's vector is the mean of what its words have in
the model's word table. The linear map that fits the known entities best, from their titles' vectors to their rows,
gives a row to any other title.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import torch
from torch import Tensor

from model.files import CONFIG, pretrained_words
from model.hf.load import entity_vocabulary, is_ours, read_pretrained
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.luke.titles import named_vectors
from model.training.devices import resolve_device
from pipeline.lookup.entities import MASK, SECOND_MASK
from pipeline.lookup.entities import SPECIAL_ENTITIES as SPECIAL_NAMES
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.storage.files import digest
from tasks.finetuning.entities import title_words
from tasks.io.annotations import check_same_entities
from tasks.linking.candidates import NO_ROW, Candidate

MOST = 1 << 15  # known entities that the map is fitted to
RIDGE = 0.01  # added to the variances of titles' vectors, as a share of their mean
_AT_HAND = 1 << 14  # titles


class TitleRows:
    """Rows that the entity table and the bias of its head would have for titles."""

    def __init__(self, module: LukeForPretraining, tokenizer: WordTokenizer, known: Sequence[tuple[int, str]]) -> None:
        """Fit the map by ridge regression.

        `known` are rows of its entity table with titles, the rarest last. The rarer half counts, and of that the
        last `MOST`: pages that a model does not know are rare, too.
        """
        head, table = module.heads[ENTITY_LOSS]
        self._words, self._tokenizer = module.luke.word_embeddings.token, tokenizer
        self._centre = self._words.weight.detach().mean(dim=0)
        self._at_hand: dict[str, Tensor] = {}
        chosen = known[-min(MOST, -(-len(known) // 2)) :] if known else []
        rows = torch.tensor([row for row, _ in chosen], dtype=torch.int64, device=table.weight.device)
        with torch.inference_mode():
            wanted = torch.cat([table.weight[rows], head.bias[rows, None]], dim=1).double()
            given = self._vectors([title for _, title in chosen]).double()
            self._map = ridge(given, wanted)

    def _vectors(self, titles: Sequence[str]) -> Tensor:
        """The titles' vectors (titles, hidden)."""
        return named_vectors(self._words.weight, title_words(titles, self._tokenizer), self._centre)

    @torch.inference_mode()
    def __call__(self, titles: Sequence[str]) -> Tensor:
        """(titles, width + 1): the rows, and behind them the biases; of one title or more."""
        if len(self._at_hand) > _AT_HAND:
            self._at_hand = {}
        at_hand = self._at_hand  # another thread of the service may begin a new one
        new = [title for title in dict.fromkeys(titles) if title not in at_hand]
        if new:
            matrix, shift = self._map
            found = (self._vectors(new).double() @ matrix + shift).to(self._words.weight.dtype)
            at_hand.update(zip(new, found, strict=True))
        return torch.stack([at_hand[title] for title in titles])


def ridge(given: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix (in, out) and shift (out) by which `given` (n, in) comes closest to `wanted` (n, out).

    The square of the matrix counts, too, so that few rows are not learnt by heart; without any row both are zero.
    `given` is changed.
    """
    if not len(given):
        return given.new_zeros((given.shape[1], wanted.shape[1])), wanted.new_zeros(wanted.shape[1])
    means = given.mean(dim=0), wanted.mean(dim=0)
    given.sub_(means[0])
    square = given.T @ given
    strength = (RIDGE * square.diagonal().mean()).clamp(min=torch.finfo(square.dtype).eps)
    matrix = torch.linalg.solve(square + strength * torch.eye(len(square)).to(square), given.T @ (wanted - means[1]))
    return matrix, means[1] - means[0] @ matrix


@dataclass(frozen=True)
class EntityModel:
    """A pretrained model."""

    folder: Path
    module: LukeForPretraining
    tokenizer: WordTokenizer
    row_of: Callable[[Candidate], int]  # the row of its entity table that a candidate has, or NO_ROW
    known: Callable[[], Sequence[tuple[int, str]]]  # rows and titles of its entities but the special ones, in order
    mask_row: int
    device: str
    max_words: int  # of an input: of a pretraining that is known, those of its longest sequence
    tokens_per_batch: int = 2048

    @property
    def room(self) -> int:
        """Return how many tokens of a text an input can have."""
        return self.max_words - 2

    @cached_property
    def of_titles(self) -> TitleRows:
        """Rows for pages that the model does not know."""
        return TitleRows(self.module, self.tokenizer, self.known())


def load_model(folder: Path, table: MentionTable, tokenizer: WordTokenizer, *, device: str = "auto") -> EntityModel:
    """The model of a folder of Pretrain or ExportHuggingFace, or of transformers' LukeForMaskedLM.

    The latter two tell the titles of their entities (`entity_vocab.json`), by which these are the table's. Raises:
    ValueError for another folder, and where model, tokenizer and table do not fit together.
    """
    vocabulary = of_language(read_titles(folder), table.manifest.facts["language"])
    module = read_pretrained(folder)
    if tokenizer.vocab_size > module.config.vocab_size:
        raise ValueError(
            f"{folder}: the model has {module.config.vocab_size:,} words, the tokenizer {tokenizer.vocab_size:,}; "
            "give the model's own tokenizer"
        )
    size = module.config.entity_vocab_size
    mask_row = MASK_ENTITY
    known: Callable[[], list[tuple[int, str]]] = table.targets.entities
    if vocabulary:
        row_of, mask_row = rows_by_title(vocabulary, table, size, str(folder)), vocabulary[MASK]
        known = partial(titles_of, vocabulary)
    else:
        check_same_entities(Path(table.folder), folder)
        row_of = rows_by_id(table, size, str(folder))
    chosen = str(resolve_device(device))
    size = module.config.max_words
    longest = min(size, pretrained_words(folder) or size)
    return EntityModel(folder, module.to(chosen).eval(), tokenizer, row_of, known, mask_row, chosen, longest)


def model_folder(folder: Path) -> Path:
    """Return where the model is: the folder itself or, in that of ExportHuggingFace, `model`."""
    inner = folder / "model"
    return inner if (inner / CONFIG).is_file() and not (folder / CONFIG).is_file() else folder


def read_titles(folder: Path) -> dict[str, int]:
    """The rows of a model's entities by their titles; empty for a model of ours. Raises: ValueError for neither."""
    vocabulary = entity_vocabulary(str(folder)) if folder.is_dir() else {}
    if not vocabulary and not is_ours(folder):
        raise ValueError(f"{folder}: neither a folder of Pretrain nor a LUKE with its entity_vocab.json")
    return vocabulary


def of_language(vocabulary: dict[str, int], language: str) -> dict[str, int]:
    """The titles of one language, where a vocabulary has titles of several, as "de:Affe"; else all, as they are."""
    prefix = f"{language}:"  # no title of the language's own wiki begins with it
    own = {title.removeprefix(prefix): row for title, row in vocabulary.items() if title.startswith(prefix)}
    return own | {name: vocabulary[name] for name in SPECIAL_NAMES if name in vocabulary} if own else vocabulary


def rows_by_id(table: MentionTable, size: int, source: str) -> Callable[[Candidate], int]:
    """The rows of a model whose entities are the table's. Raises: ValueError where it has not as many."""
    if size != table.manifest.facts["entities"]:
        raise ValueError(
            f"{source}: the model has {size:,} entities, the vocabulary of {table.folder} "
            f"{table.manifest.facts['entities']:,}; give the mention table of the model's run"
        )
    return lambda candidate: NO_ROW if candidate.entity_id is None else candidate.entity_id


def titles_of(vocabulary: dict[str, int]) -> list[tuple[int, str]]:
    """The rows and titles of a vocabulary's entities, without the special ones, in the order of the rows."""
    special = (*SPECIAL_NAMES, SECOND_MASK)
    return sorted((row, title) for title, row in vocabulary.items() if title not in special)


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
    return lambda candidate: rows.get(candidate.title, NO_ROW)
