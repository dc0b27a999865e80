"""A pretrained model that is asked for entities: its folder, and its entities for the titles of a mention table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from model.files import CONFIG, pretrained_words
from model.hf.load import entity_vocabulary, is_ours, read_pretrained
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES
from model.luke.heads import LukeForPretraining
from model.training.loop import resolve_device
from pipeline.lookup.entities import MASK, SECOND_MASK
from pipeline.lookup.entities import SPECIAL_ENTITIES as SPECIAL_NAMES
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.storage.files import digest
from tasks.io.annotations import check_same_entities
from tasks.linking.candidates import NO_ROW, Candidate
from tasks.linking.model.titles import TitleRows


@dataclass(frozen=True)
class EntityModel:
    """A pretrained model.

    `row_of` gives the row of its entity table that a candidate has, or NO_ROW; `known` the rows and titles of its
    entities without the special ones, in order. An input has `max_words` at most: of a pretraining that is known,
    those of its longest sequence.
    """

    folder: Path
    module: LukeForPretraining
    tokenizer: WordTokenizer
    row_of: Callable[[Candidate], int]
    known: Callable[[], Sequence[tuple[int, str]]]
    mask_row: int
    device: str
    max_words: int
    tokens_per_batch: int = 2048

    @property
    def room(self) -> int:
        """Return how many tokens of a text an input can have."""
        return self.max_words - 2

    @cached_property
    def of_titles(self) -> TitleRows:
        """Rows for pages that the model does not know."""
        return TitleRows(self.module, self.tokenizer, self.known())

    def prepare(self) -> None:
        """Find the map for pages that it does not know; the first question would wait for it."""
        _ = self.of_titles


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
