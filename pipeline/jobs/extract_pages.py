"""ExtractPages: the dump in; pages, paragraphs with links, redirects, rejected pages and lost templates out."""

import contextlib
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat
from typing import Any

import pyarrow as pa

from pipeline import schemas, storage
from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import Page, Rejected, read_pages
from pipeline.jobs.read_templates import TemplatePages
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import is_disambiguation, normalize_title
from pipeline.storage.blocks import Block, PageMarker, RunBlocks
from pipeline.storage.failures import check_pages, list_reasons
from pipeline.storage.parquet import ParquetRows
from pipeline.wikitext.extract import extract
from pipeline.wikitext.paragraphs import Extraction
from pipeline.wikitext.templates.losses import Losses, add_losses
from pipeline.wikitext.templates.table import DumpTemplates

logger = logging.getLogger("pipeline")

TABLES = schemas.TABLES["ExtractPages"]
Rows = dict[str, list[tuple[Any, ...]]]


def build(
    run: RunBlocks,
    paths: Sequence[str],
    indexes: Mapping[str, str],
    block_bytes: int,
    folder: str,
    *,
    site: Mapping[str, Any],
    profile: str,
    allow_truncated: bool,
    max_rejected: float,
    dump: str,
    templates: str = "",
) -> storage.Result:
    """Write the five tables, block by block.

    `indexes` are those of the gzip files among `paths`, `site` is what FetchDump says of the wiki; without
    `templates`, the folder of ReadTemplates, the dump's templates are not shown. Raises: ValueError: the dump is
    damaged, too many pages are rejected, or there is no article.
    """
    arguments = {"site": dict(site), "profile": profile, "allow_truncated": allow_truncated}
    if templates:
        arguments["templates"] = templates
    blocks = run(PageExtractor, plan_blocks(paths, block_bytes, indexes), arguments)
    result = storage.merge_blocks(blocks)
    storage.log_failures(folder, result.files)
    read, rows, drops = result.facts["pages_read"], result.rows, Counter(result.drops)
    rejected = {name.partition(":")[2]: drops[name] for name in drops if name.startswith("rejected:")}
    if not rows["pages"]:
        reasons = f": {list_reasons(rejected)}" if rejected else ""
        raise ValueError(
            f"--dump {dump}: no article among its {read:,} pages ({rows['redirects']:,} redirects, "
            f"{drops['pages:other_namespace']:,} in other namespaces, {rows['rejected']:,} rejected{reasons}); "
            "wanted a dump of articles"
        )
    check_pages(rejected, read, max_rejected)
    if drops["pages:truncated"] or drops["dump:end_missing"]:
        logger.warning("the dump ends in the middle: %d page was cut", drops["pages:truncated"])
    return result


class PageExtractor:
    """The work on one block: writes the pages, paragraphs, redirects and rejected pages that begin in it.

    And what templates without a rule cost there, by their names.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.site = SiteInfo.from_dict(arguments["site"])
        self.profile: str = arguments["profile"]
        self.allow_truncated: bool = arguments["allow_truncated"]
        folder = arguments.get("templates")
        self.dumped = TemplatePages(folder) if folder else None

    def __call__(self, block: Block, folder: str, marker: PageMarker) -> storage.Result:
        counts: Counter[str] = Counter()
        links = 0
        losses: Losses = {}
        failures = storage.Failures()
        paths = {table: f"{table}/{storage.block_name(block.number)}.parquet" for table in TABLES}
        with contextlib.ExitStack() as stack:
            writers = {
                table: stack.enter_context(
                    storage.parquet_rows(
                        storage.join(folder, path),
                        TABLES[table].schema,
                        ParagraphRows if table == "paragraphs" else ParquetRows,
                    )
                )
                for table, path in paths.items()
            }
            for page in read_pages(
                block, self.site, counts, profile=self.profile, allow_truncated=self.allow_truncated
            ):
                is_fatal = not marker.begin(page.page_id)
                found = page_rows(
                    page, self.site, self.profile, counts, failures, self.dumped, is_fatal=is_fatal
                )
                for table, rows in found.items():
                    writers[table].extend(rows)
                    if table == "rejected":
                        counts[f"rejected:{rows[0][2]}"] += 1
                    if table == "paragraphs":
                        links += sum(len(extraction.targets) for *_, extraction in rows)
                        for *_, extraction in rows:
                            add_losses(losses, extraction.losses)
            writers["templates"].extend([(name, *loss) for name, loss in sorted(losses.items())])
        count = {table: writer.count for table, writer in writers.items()}
        files = tuple(storage.describe(folder, path, count[table]) for table, path in paths.items())
        facts = {"pages_read": counts.pop("pages_read", 0)}
        del count["templates"]  # a name has a row in each block
        return storage.Result(files, {**count, "links": links}, +counts, facts)


def page_rows(
    page: Page | Rejected,
    site: SiteInfo,
    profile: str,
    drops: Counter[str],
    failures: storage.Failures,
    dumped: DumpTemplates | None = None,
    *,
    is_fatal: bool = False,
) -> Rows:
    """The rows that a page gives, by table ("paragraphs": one entry with all of them); a fatal one is rejected."""
    if isinstance(page, Rejected):
        return {"rejected": [(page.page_id, page.title, page.reason, "", "")]}
    title = normalize_title(page.title, site)[0]
    if is_fatal:
        return {"rejected": [(page.page_id, title, "worker_died", "", "")]}
    if page.redirect:
        return {"redirects": [(title, *page.redirect)]}
    try:
        extraction = extract(page.text, site, title=title, profile=profile, dumped=dumped)
        disambiguation = is_disambiguation(page.text, site)
    except Exception as error:  # whatever a page does to the parser, it does to itself alone
        return {"rejected": [(page.page_id, title, *failures.describe(error))]}
    drops.update(extraction.drops)
    return {
        "pages": [(page.page_id, title, disambiguation, len(extraction.texts))],
        "paragraphs": [(page.page_id, title, extraction)],
    }


class ParagraphRows(ParquetRows):
    """Collects the paragraphs of pages, which come as their id, their title and what was extracted."""

    def count_rows(self, rows: Sequence[tuple[int, str, Extraction]]) -> int:
        return sum(len(extraction.texts) for _, _, extraction in rows)

    def to_table(self, rows: Sequence[tuple[int, str, Extraction]]) -> pa.Table:
        counts = [len(extraction.texts) for _, _, extraction in rows]

        def joined(column: str) -> list[Any]:
            return list(chain.from_iterable(getattr(extraction, column) for _, _, extraction in rows))

        def repeated(values: Iterable[Any]) -> list[Any]:
            return list(chain.from_iterable(map(repeat, values, counts)))

        links = pa.StructArray.from_arrays(
            [pa.array(joined(f"{field.name}s"), field.type) for field in schemas.ANNOTATIONS.value_type],
            fields=list(schemas.ANNOTATIONS.value_type),
        )
        offsets = pa.array(list(accumulate(joined("link_counts"), initial=0)), pa.int32())
        columns = {
            "page_id": repeated(page_id for page_id, _, _ in rows),
            "title": repeated(title for _, title, _ in rows),
            "paragraph": list(chain.from_iterable(map(range, counts))),
            "section": joined("sections"),
            "text": joined("texts"),
            "links": pa.ListArray.from_arrays(offsets, links, type=schemas.ANNOTATIONS),
        }
        return pa.table(columns, schema=self.schema)
