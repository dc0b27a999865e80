"""The entity vocabulary: which pages the model knows as entities, their ids, and every title that leads to them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import storage

PAD, UNK, MASK = "[PAD]", "[UNK]", "[MASK]"
SPECIAL_ENTITIES = (PAD, UNK, MASK)
PAD_ID, UNK_ID, MASK_ID = range(3)
ALIASES = "aliases.marisa"

SCHEMA = pa.schema(
    [("entity_id", pa.int32()), ("title", pa.string()), ("link_count", pa.int64()), ("page_id", pa.int64())]
)


@dataclass(frozen=True)
class EntityVocab:
    """Entities by id: the three special ones, then titles by falling link count, ties by title.

    Attributes:
        titles: title of each id.
        link_counts: annotations that end at each entity, after redirects; 0 for the special ones.
        page_ids: page id of each, -1 where there is none.
    """

    titles: tuple[str, ...]
    link_counts: tuple[int, ...]
    page_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.titles[:3] != SPECIAL_ENTITIES:
            raise ValueError(f"entity vocabulary begins with {self.titles[:3]}; wanted {SPECIAL_ENTITIES}")

    def __len__(self) -> int:
        return len(self.titles)

    def ids(self) -> dict[str, int]:
        """Title -> id, the special entities included."""
        return {title: number for number, title in enumerate(self.titles)}

    @classmethod
    def rank(cls, counts: Iterable[tuple[str, int, int]], size: int) -> "EntityVocab":
        """The `size` - 3 most linked of (title, link count, page id), in any order."""
        ranked = sorted(counts, key=lambda row: (-row[1], row[0]))[: size - len(SPECIAL_ENTITIES)]
        rows = [(title, 0, -1) for title in SPECIAL_ENTITIES] + ranked
        titles, link_counts, page_ids = zip(*rows, strict=True)
        return cls(titles, link_counts, page_ids)

    def write(self, folder: str) -> list[storage.FileEntry]:
        """Write it as Parquet, in the two formats of LUKE's releases, and as transformers' LukeTokenizer reads it."""
        table = pa.table([range(len(self)), self.titles, self.link_counts, self.page_ids], schema=SCHEMA)
        with storage.atomic_output(storage.join(folder, "entity_vocab.parquet")) as stream:
            pq.write_table(table, stream, compression="zstd", row_group_size=storage.ROW_GROUP_ROWS)
        pairs = list(zip(self.titles, self.link_counts, strict=True))
        tsv = "".join(f"{title}\t{count}\n" for title, count in pairs)
        jsonl = "".join(
            json.dumps({"id": number, "entities": [[title, None]], "count": count}, ensure_ascii=False) + "\n"
            for number, (title, count) in enumerate(pairs)
        )
        texts = {
            "entity_vocab.tsv": tsv,
            "entity_vocab.jsonl": jsonl,
            "entity_vocab.json": json.dumps(self.ids(), ensure_ascii=False, indent=0) + "\n",
        }
        for name, text in texts.items():
            storage.write_bytes(storage.join(folder, name), text.encode())
        return [storage.describe(folder, name, len(self)) for name in ("entity_vocab.parquet", *texts)]

    @classmethod
    def load(cls, folder: str) -> "EntityVocab":
        """Read the vocabulary that the stage BuildEntityVocab wrote."""
        rows = list(storage.read_rows(storage.join(folder, "entity_vocab.parquet")))
        columns = (tuple(row[name] for row in rows) for name in ("title", "link_count", "page_id"))
        return cls(*columns)


class Aliases:
    """Every title or redirect that ends at a vocabulary entity -> its id, in a memory-mapped file."""

    def __init__(self, path: str) -> None:
        import marisa_trie

        self._trie = marisa_trie.RecordTrie("<i").mmap(path)

    def __len__(self) -> int:
        return len(self._trie)

    def get(self, title: str) -> int | None:
        """Entity id of the title, after redirects; None where it leads to no entity of the vocabulary."""
        found = self._trie.get(title)
        return found[0][0] if found else None


def alias_rows(
    titles: Iterable[Mapping[str, Any]], entity_ids: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """From rows of the titles table, those that end at an entity, with its id."""
    for row in titles:
        number = entity_ids.get(row["canonical"]) if row["status"] in ("page", "redirect") else None
        if number is not None and number >= len(SPECIAL_ENTITIES):
            yield row["title"], number


def write_aliases(path: str, rows: Iterable[tuple[str, int]]) -> int:
    """Write the memory-mapped alias file to a local path; returns how many aliases it holds."""
    import marisa_trie

    trie = marisa_trie.RecordTrie("<i", ((title, (number,)) for title, number in rows))
    with storage.atomic_path(path) as aside:
        trie.save(aside)
    return len(trie)
