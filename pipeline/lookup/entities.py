"""The entity vocabulary: which pages the model knows as entities, their ids, and every title that leads to them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline import schemas, storage
from pipeline.storage.tries import TextMap

PAD, UNK, MASK = "[PAD]", "[UNK]", "[MASK]"
SPECIAL_ENTITIES = (PAD, UNK, MASK)
UNK_ID = SPECIAL_ENTITIES.index(UNK)
SECOND_MASK = "[MASK2]"  # transformers wants it behind the entities, for its heads over pairs of entities
FILE = "entity_vocab"
ALIASES = "aliases.tries"  # every title or redirect that ends at an entity, with its id
QIDS = "entity_qids.json"

Row = tuple[str, int, int, str | None]  # title, link count, page id, QID
Entry = tuple[int, *Row]  # with its id before it
SPECIAL_ROWS: Sequence[Row] = tuple((title, 0, -1, None) for title in SPECIAL_ENTITIES)


@dataclass(frozen=True)
class EntityVocab:
    """Entities by id: the three special ones, then (where it was built here) titles by falling link count."""

    titles: tuple[str, ...]  # of each id
    link_counts: tuple[int, ...]  # annotations that end at each entity, after redirects; 0 for the special ones
    page_ids: tuple[int, ...]  # page id of each, -1 where there is none
    qids: tuple[str | None, ...] = ()  # item of each at Wikidata; None: not known; empty where none is known at all

    def __post_init__(self) -> None:
        if self.titles[:3] != SPECIAL_ENTITIES:
            raise ValueError(f"entity vocabulary begins with {self.titles[:3]}; wanted {SPECIAL_ENTITIES}")

    def __len__(self) -> int:
        return len(self.titles)

    def ids(self) -> dict[str, int]:
        """Title -> id, the special entities included."""
        return {title: number for number, title in enumerate(self.titles)}

    def digest(self) -> str:
        """SHA-256 of the titles in the order of their ids: equal where the ids mean the same."""
        return storage.digest(self.titles)

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> "EntityVocab":
        """The vocabulary of entities by their ids, the special ones first."""
        titles, link_counts, page_ids, qids = zip(*rows, strict=True)
        return cls(titles, link_counts, page_ids, qids if any(qids) else ())

    def write(self, folder: str) -> list[storage.FileEntry]:
        """Write it as Parquet, in the two formats of LUKE's releases, and as transformers' LukeTokenizer reads it.

        Beside the last, which has no room for them, stand the QIDs by title, where some are known.
        """
        qids = self.qids or (None,) * len(self)
        columns = range(len(self)), self.titles, self.link_counts, self.page_ids, qids
        with storage.parquet_rows(storage.join(folder, f"{FILE}.parquet"), schemas.ENTITIES.schema) as table:
            table.extend(zip(*columns, strict=True))
        pairs = list(zip(self.titles, self.link_counts, strict=True))
        tsv = "".join(f"{title}\t{count}\n" for title, count in pairs)
        rows = ({"id": at, "entities": [[title, None]], "count": count} for at, (title, count) in enumerate(pairs))
        jsonl = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        ids = {**self.ids(), SECOND_MASK: len(self)}
        numbers = json.dumps(ids, ensure_ascii=False, indent=0) + "\n"
        texts = {f"{FILE}.tsv": tsv, f"{FILE}.jsonl": jsonl, f"{FILE}.json": numbers}
        if known := {title: qid for title, qid in zip(self.titles, qids, strict=True) if qid}:
            texts[QIDS] = json.dumps(known, ensure_ascii=False, indent=0) + "\n"
        for name, text in texts.items():
            storage.write_bytes(storage.join(folder, name), text.encode())
        counts = dict.fromkeys((f"{FILE}.parquet", *texts), len(self)) | ({QIDS: len(known)} if known else {})
        return [storage.describe(folder, name, count) for name, count in counts.items()]

    @classmethod
    def load(cls, path: str, language: str | None = None) -> "EntityVocab":
        """Read a vocabulary.

        Args:
            path: the folder of the stage BuildEntityVocab; or a file that ends in `.parquet` (ours), `.tsv` or
                `.jsonl` (LUKE's releases), or `.json` (transformers). What a format does not tell is 0 (link
                counts), -1 (page ids) or None (QIDs).
            language: whose title to take where a multilingual `.jsonl` has several for an entity.

        Raises:
            ValueError: it is none of these, or its ids are not 0, 1, 2, ... with a title each.
        """
        file = vocab_file(path)
        if storage.file_size(file) is None:
            raise ValueError(
                f"{path}: no entity vocabulary; wanted a file .parquet, .tsv, .jsonl or .json, or a folder "
                f"with {FILE}.parquet"
            )
        ending = file.rpartition(".")[2]
        try:
            entries = list(_READERS[ending](file, language))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"{path}: not an entity vocabulary in the format .{ending} ({error})") from None
        _check(path, entries)
        entries.sort(key=lambda entry: entry[0])
        try:
            return cls.of_rows(entry[1:] for entry in entries)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def vocab_file(path: str) -> str:
    """The file that a vocabulary is read from: the path itself, or within the folder of BuildEntityVocab."""
    return path if path.rpartition(".")[2] in _READERS else storage.join(path, f"{FILE}.parquet")


def _check(path: str, entries: list[Entry]) -> None:
    """Ids are 0, 1, 2, ... and no title is there twice."""
    for entry in entries:
        if [type(value) for value in entry[:4]] != [int, str, int, int]:
            raise ValueError(f"{path}: found the entity {entry[:3]}; wanted a whole number, a title and a count")
    titles: dict[str, int] = {}
    for wanted, (number, title, *_) in enumerate(sorted(entries, key=lambda entry: entry[:2])):
        if number != wanted:
            raise ValueError(f"{path}: the entity id {wanted} is missing or there twice; wanted 0, 1, 2, ...")
        if title in titles:
            raise ValueError(f"{path}: {title!r} has the ids {titles[title]} and {number}; wanted one")
        titles[title] = number
    if not entries:
        raise ValueError(f"{path}: holds no entity")


def _read_tsv(path: str, language: str | None) -> Iterator[Entry]:
    for number, line in enumerate(_lines(path)):
        title, tab, count = line.rpartition("\t")
        if not tab or not count.isdecimal():
            raise ValueError(f"line {number + 1} is {line[:80]!r}; wanted a title, a tab and a count")
        yield number, title, int(count), -1, None


def _read_jsonl(path: str, language: str | None) -> Iterator[Entry]:
    for line in _lines(path):
        record = json.loads(line)
        # An entity that has no title in this language cannot be linked to; its name still has to be its own.
        own = [title for title, code in record["entities"] if code in (None, language) or title in SPECIAL_ENTITIES]
        title = own[0] if own else ":".join(reversed(record["entities"][0]))
        yield record["id"], title, record.get("count") or 0, -1, None


def _read_json(path: str, language: str | None) -> Iterator[Entry]:
    ids = json.loads(storage.read_bytes(path))
    for title, number in ids.items():
        if title != SECOND_MASK or number != len(ids) - 1:
            yield number, title, 0, -1, None


def _lines(path: str) -> Iterator[str]:
    for line in storage.read_bytes(path).decode().split("\n"):
        if line := line.removesuffix("\r"):
            yield line


_READERS: Mapping[str, Callable[[str, str | None], Iterator[Entry]]] = {
    "parquet": lambda path, language: storage.read_tuples([path], schemas.ENTITIES.schema.names),
    "tsv": _read_tsv,
    "jsonl": _read_jsonl,
    "json": _read_json,
}


def alias_rows(titles: Sequence[str], entity_ids: Mapping[str, int] | TextMap) -> Iterator[tuple[str, int]]:
    """(title, number) of each title and redirect that ends at a page with a number.

    `titles` are the files of that table; `entity_ids` has the number of a page by its own title.
    """
    for title, canonical in storage.read_tuples(titles, ["title", "canonical"]):
        number = entity_ids.get(canonical or "")  # a loop ends nowhere
        if number is not None:
            yield title, number
