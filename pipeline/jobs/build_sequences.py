"""BuildSequences: paragraphs of a block in, Arrow shards of word and entity ids out."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pipeline import storage
from pipeline.dump.containers import Block
from pipeline.lookup.entities import Aliases
from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.shards import HELD_OUT, SEEN, is_held_out, sequence_schema, shard
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.storage.blocks import BlockRecord, PageGate
from pipeline.wikitext.paragraphs import Link, Paragraph


def read_paragraphs(path: str) -> Iterator[tuple[int, list[Paragraph]]]:
    """The pages of a paragraphs file as (page id, paragraphs), one page at a time."""
    rows = storage.read_rows(path, ["page_id", "section", "text", "links"])
    for page_id, group in groupby(rows, key=lambda row: row["page_id"]):
        yield (
            page_id,
            [
                Paragraph(row["section"], row["text"], tuple(Link(**link) for link in row["links"]))
                for row in group
            ],
        )


class SequenceBuilder:
    """Builds the sequences of blocks; holds the tokenizer and the memory-mapped aliases."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.tokenizer = WordTokenizer.load(arguments["tokenizer"])
        self.aliases = Aliases(arguments["aliases"])
        self.limits = Limits(**arguments["limits"])
        self.language = arguments["language"]
        self.splitter = arguments["splitter"]
        self.profile = arguments["profile"]
        self.held_out = arguments["held_out"]
        self.schema = sequence_schema(self.tokenizer.vocab_size)

    def __call__(self, block: Block, folder: str, gate: PageGate) -> BlockRecord:
        drops: Counter[str] = Counter()
        facts: Counter[str] = Counter()
        paths = {part: f"{part}/{storage.block_name(block.number)}.arrow" for part in (SEEN, HELD_OUT)}
        with contextlib.ExitStack() as stack:
            shards = {
                part: stack.enter_context(shard(storage.join(folder, path), self.schema))
                for part, path in paths.items()
            }
            for page_id, paragraphs in read_paragraphs(block.path):
                if not gate.enter(page_id):
                    drops["pages:worker_died"] += 1
                    continue
                try:
                    sequences, page_drops, page_facts = self._build(paragraphs)
                except ValueError:  # a splitter of the user's that is wrong
                    raise
                except Exception as error:  # whatever a page does to the splitter, it does to itself alone
                    drops[f"pages:{type(error).__name__}"] += 1
                    continue
                drops.update(page_drops)
                facts.update(page_facts)
                shards[HELD_OUT if is_held_out(page_id, self.held_out) else SEEN].extend(page_id, sequences)
        counts = {part: shards[part].count for part in paths}
        files = tuple(storage.describe(folder, path, counts[part]) for part, path in paths.items())
        return BlockRecord(files, counts, drops, facts)

    def _build(self, paragraphs: Sequence[Paragraph]) -> tuple[list[Any], Counter[str], Counter[str]]:
        return build_page(
            paragraphs,
            language=self.language,
            tokenizer=self.tokenizer,
            entity_id=self.aliases.get,
            limits=self.limits,
            profile=self.profile,
            splitter=self.splitter,
        )
