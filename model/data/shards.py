"""The sequences that a corpus stage wrote, memory-mapped, in an order that is a function of (seed, epoch).

The folder's manifest.json is the truth: only the files it lists are opened, and their sizes are checked.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from model.luke.config import SPECIAL_ENTITIES
from model.luke.titles import Titles, TitleWords

COLUMNS = ("word_ids", "entity_ids", "entity_starts", "entity_ends", "page_id")
REMEDY = "run BuildSequences again"
TITLE_WORDS = "title_words.arrow"
TITLE_COLUMNS = ("title_word_ids", "name_word_ids")
SEEN, HELD_OUT = "sequences", "held_out"
ORDER_STREAM = 0
Numbers = NDArray[Any]
NOTHING = pa.table({name: pa.array([], pa.list_(pa.int32())) for name in COLUMNS})


@dataclass(frozen=True)
class SequenceFacts:
    """The facts of the manifest: vocabulary sizes, special word ids and limits."""

    word_vocab_size: int
    entity_vocab_size: int
    cls_id: int
    sep_id: int
    pad_id: int
    mask_id: int
    special_ids: tuple[int, ...]
    max_words: int
    max_mention_words: int


@dataclass(frozen=True)
class AnnotatedSequence:
    """One sequence without [CLS] and [SEP]: its word ids, and its entities over half-open spans of them."""

    word_ids: Numbers
    entity_ids: Numbers
    entity_starts: Numbers
    entity_ends: Numbers
    page_id: int


class Corpus:
    """All sequences of a folder by their index; nothing else is read from disk.

    `part` is "sequences", what pretraining sees, or "held_out", which may be empty. `fingerprint` is the
    SHA-256 of the manifest, which holds that of every file. A pickled corpus is its folder's name: it is
    opened anew where it is unpickled. Raises ValueError for files that differ from the manifest.
    """

    def __init__(self, folder: Path, part: str = SEEN) -> None:
        self.folder = folder
        self.part = part
        manifest, self.fingerprint = read_manifest(folder)
        self.facts = read_facts(manifest["facts"], folder / "manifest.json")
        self.listed = {entry["path"] for entry in manifest["files"]}
        tables = []
        lengths = Counter[str]()  # of each language's sequences, in their order; a single language has no name
        for entry in sorted(manifest["files"], key=lambda entry: entry["path"]):
            check_file(folder, entry)
            if entry["path"].startswith(f"{part}/") and entry["path"].endswith(".arrow"):
                tables.append(open_table(folder / entry["path"], COLUMNS).select(COLUMNS))
                lengths[entry["path"].rpartition("/")[0]] += tables[-1].num_rows
        ends = pairwise(accumulate(lengths.values(), initial=0))
        self.languages = {path.rpartition("/")[2]: range(*pair) for path, pair in zip(lengths, ends, strict=True)}
        self.language_exponent = float(manifest["facts"].get("language_exponent", 1))
        self.table = pa.concat_tables(tables) if tables else NOTHING
        self.columns = [self.table.column(name) for name in COLUMNS]  # each knows where its blocks begin
        self.word_starts = read_word_starts(folder, manifest["files"], self.facts.word_vocab_size)
        if not len(self) and part == SEEN:
            raise ValueError(f"{folder}: no sequences; pretraining needs at least one, use a larger dump")

    def __reduce__(self) -> tuple[type["Corpus"], tuple[Path, str]]:
        return Corpus, (self.folder, self.part)

    def titles(self) -> Titles:
        """The words of the entities' titles; ValueError for a file that is not of this vocabulary."""
        path = self.folder / TITLE_WORDS
        if TITLE_WORDS not in self.listed:
            raise ValueError(f"{self.folder / 'manifest.json'}: {path.name} is not listed; {REMEDY}")
        table = open_table(path, TITLE_COLUMNS)
        whole, names = (read_title_words(path, table.column(name), self.facts) for name in TITLE_COLUMNS)
        return Titles(whole, names)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, index: int) -> AnnotatedSequence:
        """The sequence of that index; ValueError for unknown words and spans that do not lie in its words."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        *lists, page = (column[index] for column in self.columns)
        words, entities, starts, ends = (each.values.to_numpy() for each in lists)
        sequence = AnnotatedSequence(words, entities, starts, ends, page.as_py())
        self._check(sequence, index)
        return sequence

    def _check(self, sequence: AnnotatedSequence, index: int) -> None:
        starts, ends, words = sequence.entity_starts, sequence.entity_ends, len(sequence.word_ids)
        ids, size, most = sequence.word_ids, self.facts.word_vocab_size, self.facts.max_words - 2
        problem = ""
        if not 0 < words <= most:
            problem = f"has {words} words, wanted 1 to {most}"
        elif not 0 <= ids.min() <= ids.max() < size:
            problem = f"has word ids from {ids.min()} to {ids.max()}, but word_vocab_size is {size}"
        elif not len(starts) == len(ends) == len(sequence.entity_ids):
            problem = "has entity columns of different lengths"
        elif np.any((starts < 0) | (starts >= ends) | (ends > words)):
            problem = f"has an entity outside its {words} words"
        if problem:
            raise ValueError(f"{self.folder}: sequence {index} {problem}; {REMEDY}")


def count_entities(corpus: Corpus, chosen: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The number of annotations of each entity of the vocabulary, (entity_vocab_size,); one block is read at a time.

    Of the `chosen` sequences alone, which are rising indices (None: of all).
    """
    size = corpus.facts.entity_vocab_size
    counts = np.zeros(size, dtype=np.int64)
    start = 0
    for block in corpus.table.column("entity_ids").chunks:
        begin, start = start, start + len(block)
        if chosen is not None:
            first, last = np.searchsorted(chosen, (begin, start))
            block = block.take(pa.array(chosen[first:last] - begin))
        entity_ids = block.flatten().to_numpy()
        if len(entity_ids) and not 0 <= entity_ids.min() <= entity_ids.max() < size:
            raise ValueError(
                f"{corpus.folder}: entity ids from {entity_ids.min()} to {entity_ids.max()}, but "
                f"entity_vocab_size is {size}; {REMEDY}"
            )
        counts += np.bincount(entity_ids, minlength=size)
    return counts


def count_known(corpus: Corpus) -> NDArray[np.int64]:
    """The number of known entities, not [UNK], in each sequence, (sequences,); one block is read at a time."""
    counts = [np.zeros(0, dtype=np.int64)]
    for block in corpus.table.column("entity_ids").chunks:
        before = np.append(0, np.cumsum(block.flatten().to_numpy() >= SPECIAL_ENTITIES))
        offsets = block.offsets.to_numpy()
        counts.append(np.diff(before[offsets - offsets[0]]))
    return np.concatenate(counts)


def read_manifest(folder: Path) -> tuple[dict[str, Any], str]:
    """The manifest of a folder and the SHA-256 of its bytes."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; give the folder that BuildSequences wrote")
    content = path.read_bytes()
    try:
        manifest = json.loads(content)
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}); {REMEDY}") from error
    if not isinstance(manifest, dict) or not {"facts", "files"} <= set(manifest):
        raise ValueError(f"{path}: keys facts and files wanted; give the folder that BuildSequences wrote")
    return manifest, hashlib.sha256(content).hexdigest()


def read_facts(facts: Mapping[str, Any], source: Path) -> SequenceFacts:
    """The facts of a manifest; a missing one is a ValueError (more than these are allowed)."""
    names = [field.name for field in fields(SequenceFacts)]
    missing = [name for name in names if name not in facts]
    if missing:
        raise ValueError(f"{source}: facts {', '.join(missing)} are missing; {REMEDY}")
    values = {name: facts[name] for name in names}
    return SequenceFacts(**{**values, "special_ids": tuple(values["special_ids"])})


def check_file(folder: Path, entry: Mapping[str, Any]) -> None:
    """Raise a ValueError unless the file of a manifest's entry is there in its full size."""
    path = folder / entry["path"]
    if not path.is_file():
        raise ValueError(f"{path}: no such file, but the manifest lists it; {REMEDY}")
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise ValueError(f"{path}: {size} bytes, manifest says {entry['bytes']}; {REMEDY}")


def open_table(path: Path, columns: Sequence[str], remedy: str = REMEDY) -> pa.Table:
    """The table of an Arrow IPC stream, memory-mapped; ValueError for one that lacks a column."""
    try:
        table = pa.ipc.open_stream(pa.memory_map(str(path))).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path}: not an Arrow IPC stream ({error}); {remedy}") from error
    if missing := [name for name in columns if name not in table.column_names]:
        raise ValueError(f"{path}: columns {', '.join(missing)} are missing; {remedy}")
    return table


def read_word_starts(folder: Path, files: list[Mapping[str, Any]], word_vocab_size: int) -> NDArray[np.bool_]:
    """For each word id whether it begins a word."""
    path = folder / "word_starts.arrow"
    if not any(entry["path"] == path.name for entry in files):
        raise ValueError(f"{folder / 'manifest.json'}: {path.name} is not listed; {REMEDY}")
    starts = open_table(path, ["word_start"]).column("word_start").to_numpy()
    if len(starts) != word_vocab_size:
        raise ValueError(f"{path}: {len(starts)} rows, but word_vocab_size is {word_vocab_size}; {REMEDY}")
    return starts.astype(bool)


def read_title_words(path: Path, column: pa.ChunkedArray, facts: SequenceFacts) -> TitleWords:
    """A column of lists of word ids, a row for each entity."""
    lengths, ids = list_lengths(column), pc.list_flatten(column).to_numpy().astype(np.int64)
    size, words = facts.entity_vocab_size, facts.word_vocab_size
    if len(lengths) != size:
        raise ValueError(f"{path}: {len(lengths)} rows, but entity_vocab_size is {size}; {REMEDY}")
    if len(ids) and not 0 <= ids.min() <= ids.max() < words:
        raise ValueError(
            f"{path}: word ids from {ids.min()} to {ids.max()}, but word_vocab_size is {words}: they are another "
            f"tokenizer's; {REMEDY}"
        )
    return TitleWords(ids, np.concatenate([[0], np.cumsum(lengths)]))


def list_lengths(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """The number of values in each row of a list column."""
    return np.asarray(pc.list_value_length(column).to_numpy(), np.int64)


def random_bits(seed: int, epoch: int, *, stream: int, index: int = 0) -> np.random.Philox:
    """Random bits that are a function of their arguments alone; no two argument lists share any.

    The lowest word of the counter runs, so each (stream, index) has 2^64 blocks of its own.
    """
    return np.random.Philox(
        key=np.array([seed, epoch], dtype=np.uint64), counter=np.array([0, index, stream, 0], dtype=np.uint64)
    )


def epoch_order(length: int, *, seed: int, epoch: int, index: int = 0) -> NDArray[np.int64]:
    """The order in which an epoch visits `length` sequences: a shuffle over the whole corpus, or the `index`th part."""
    # Raw bits are the same in every NumPy version; its shuffling methods do not promise that.
    bits = random_bits(seed, epoch, stream=ORDER_STREAM, index=index).random_raw(length)
    return np.argsort(bits, kind="stable")
