"""BuildSequences: paragraphs in, Arrow shards of word and entity ids out."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from pipeline import schemas, storage
from pipeline.lookup.held_out import HELD_OUT, is_held_out
from pipeline.sequences import shards
from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.storage.blocks import Block, BlockJob, PageMarker, RunBlocks
from pipeline.storage.failures import check_pages, check_share
from pipeline.storage.tries import TextMap
from pipeline.wikitext.paragraphs import Link, Paragraph

_IDS = ("cls_id", "sep_id", "pad_id", "mask_id", "unk_id")


@dataclass(frozen=True)
class Settings:
    """The settings that decide the sequences of a block."""

    tokenizer: str
    aliases: str  # the file of the titles that lead to entities
    language: str
    limits: Limits
    profile: str
    splitter: str
    held_out: float  # the share of pages that pretraining never sees


def build(
    run: RunBlocks,
    paragraphs: Sequence[str],
    folder: str,
    settings: Settings,
    *,
    check: Callable[[storage.Result], None],
    titles: Sequence[str],
    source: str,
    has_others: bool = False,
) -> storage.Result:
    """Write the shards, a block for each file of paragraphs; then what a model must know of words, and statistics.

    `check` sees whether too many pages or sentences are dropped; `titles` are those of the entity vocabulary, by id;
    `source` is the parameter that names the texts, for errors. Raises: ValueError: no sequence is left, unless the run
    `has_others`, of other wikis.
    """
    blocks = [Block(number, path, 0, storage.file_size(path) or 0) for number, path in enumerate(paragraphs)]
    result = storage.merge_blocks(run(SequenceBuilder, blocks, asdict(settings)))

    storage.log_failures(folder, result.files)
    check(result)
    read = result.facts.get("sentences_read", 0)
    if not result.rows.get(shards.SEEN) and not has_others:
        held_out = result.rows.get(HELD_OUT)
        raise ValueError(
            f"corpus.held_out {settings.held_out}: all {held_out:,} sequences are held out, none is left for training"
            if held_out
            else f"{source}: no sequence with an entity came out of its {read:,} sentences"
        )

    tokenizer = WordTokenizer.load(settings.tokenizer)
    beside = (
        write_statistics(folder, result),
        shards.write_word_starts(folder, tokenizer.word_starts()),
        shards.write_title_words(folder, titles, tokenizer),
    )
    facts = {
        **result.facts,
        "language": settings.language,
        **asdict(settings.limits),
        "entity_vocab_size": len(titles),
        # What the model needs to know of the tokenizer.
        **{name: getattr(tokenizer, name) for name in _IDS},
        "special_ids": sorted(tokenizer.special_ids),
        "word_vocab_size": tokenizer.vocab_size,
    }
    return replace(result, files=(*result.files, *beside), facts=facts)


def write_statistics(folder: str, result: storage.Result) -> storage.FileEntry:
    """Write sizes and counts of both parts, and the drops."""
    statistics = {part: shards.describe_sequences(result.paths(folder, f"{part}/")) for part in shards.PARTS}
    text = json.dumps({**statistics, "drops": result.drops}, sort_keys=True, indent=1)
    storage.write_bytes(storage.join(folder, shards.STATISTICS), text.encode() + b"\n")
    return storage.describe(folder, shards.STATISTICS)


def check_drops(made: storage.Result, pages: int, max_rejected: float, max_dropped: float) -> None:
    """Raises: ValueError: more of these pages, or of their sentences, are dropped than may be."""
    failed = {reason: count for reason, count in made.drops.items() if reason.startswith("pages:")}
    check_pages(failed, pages, max_rejected)
    lengths = {reason: made.drops.get(f"sentences:{reason}", 0) for reason in ("too_short", "too_long")}
    read = made.facts.get("sentences_read", 0)
    check_share("sentences", lengths, read, max_dropped, "sequences.max_dropped_sentences")


class SequenceBuilder(BlockJob):
    """The work on one block: writes its sequences; holds the tokenizer and the memory-mapped aliases."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.settings = settings = Settings(**{**arguments, "limits": Limits(**arguments["limits"])})
        tokenizer = WordTokenizer.load(settings.tokenizer)
        self.schema = schemas.sequences(tokenizer.vocab_size).schema
        self.build = partial(
            build_page,
            language=settings.language,
            tokenizer=tokenizer,
            entity_id=TextMap(settings.aliases).get,
            limits=settings.limits,
            profile=settings.profile,
            splitter=settings.splitter,
        )

    def __call__(self, block: Block, folder: str, marker: PageMarker) -> storage.Result:
        drops: Counter[str] = Counter()
        facts: Counter[str] = Counter()
        failures = storage.Failures()
        lost: list[tuple[int, str, str, str]] = []
        paths = {part: f"{part}/{storage.block_name(block.number)}.arrow" for part in shards.PARTS}
        with contextlib.ExitStack() as stack:
            writers = {
                part: stack.enter_context(shards.shard(storage.join(folder, path), self.schema))
                for part, path in paths.items()
            }
            for (page_id, title), paragraphs in read_paragraphs(block.path):
                if fatal := marker.begin(page_id):
                    lost.append((page_id, fatal, "", ""))
                    continue
                try:
                    # A document of the user's is no page of the wiki.
                    sequences, page_drops, page_facts = self.build(paragraphs, title=title if page_id > 0 else None)
                except ValueError:  # a splitter of the user's that is wrong
                    raise
                except Exception as error:  # whatever a page does to the splitter, it does to itself alone
                    lost.append((page_id, *failures.describe(error)))
                    continue
                drops.update(page_drops)
                facts.update(page_facts)
                part = HELD_OUT if is_held_out(page_id, self.settings.held_out) else shards.SEEN
                writers[part].extend(page_id, sequences)
        counts = {part: writers[part].count for part in paths}
        files = [storage.describe(folder, path, counts[part]) for part, path in paths.items()]
        if lost:
            drops.update(f"pages:{reason}" for _, reason, *_ in lost)
            path = f"rejected/{storage.block_name(block.number)}.parquet"
            with storage.parquet_rows(storage.join(folder, path), schemas.LOST_PAGES.schema) as rows:
                rows.extend(lost)
            files.append(storage.describe(folder, path, len(lost)))
        return storage.Result(tuple(files), counts, drops, facts)


def read_paragraphs(path: str) -> Iterator[tuple[tuple[int, str], list[Paragraph]]]:
    """The pages of a paragraphs file as ((page id, title), paragraphs), one page at a time."""
    rows = storage.read_rows(path, ["page_id", "title", "section", "text", "links"])
    for page, group in groupby(rows, key=lambda row: (row["page_id"], row["title"])):
        found = [Paragraph(row["section"], row["text"], tuple(Link(**link) for link in row["links"])) for row in group]
        yield page, found
