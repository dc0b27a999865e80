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
from pipeline.mediawiki.titles import find_language_links, is_disambiguation, normalize_title
from pipeline.storage.blocks import Block, BlockJob, PageMarker, RunBlocks
from pipeline.storage.failures import list_reasons
from pipeline.storage.parquet import ParquetRows
from pipeline.wikitext.extract import extract
from pipeline.wikitext.paragraphs import Extraction
from pipeline.wikitext.templates.losses import Losses, add_losses

logger = logging.getLogger("pipeline")

TABLES = schemas.TABLES["ExtractPages"]
LANGUAGE_LINKS = "language_links"
Rows = dict[str, list[tuple[Any, ...]]]

_FIRST_PAGES = 10_000
_OTHER_PAGES = {
    "pages:other_namespace": "in other namespaces",
    "pages:not_wikitext": "of another content model, such as Wikidata's items",
    "pages:text_elsewhere": "without their text, as in a stub dump",
    "pages:empty_text": "with an empty text",
    "pages:deleted_text": "with a deleted text",
    "pages:no_revision": "without a revision",
}
_WANTED = "wanted a dump of articles with their wikitext, as WIKI-DATE-pages-articles.xml.bz2"


def build(
    run: RunBlocks,
    paths: Sequence[str],
    block_bytes: int,
    folder: str,
    *,
    site: Mapping[str, Any],
    profile: str,
    allow_truncated: bool,
    dump: str,
    templates: str = "",
    interlanguage_links: bool = False,
) -> storage.Result:
    """Write the five tables, block by block, and with `interlanguage_links` that of the pages in other languages.

    `site` is what FetchDump says of the wiki; without `templates`, the folder of ReadTemplates, the dump's templates
    are not shown. Raises: ValueError: the dump is damaged, or there is no article.
    """
    arguments = {"site": dict(site), "profile": profile, "allow_truncated": allow_truncated}
    if templates:
        arguments["templates"] = templates
    if interlanguage_links:
        arguments[LANGUAGE_LINKS] = True
    planned = plan_blocks(paths, block_bytes)
    check_articles(planned, SiteInfo.from_dict(site), dump, profile=profile, allow_truncated=allow_truncated)
    result = storage.merge_blocks(run(PageExtractor, planned, arguments))
    storage.log_failures(folder, result.files)
    read, rows, drops = result.facts["pages_read"], result.rows, Counter(result.drops)
    if not rows["pages"]:
        raise no_article(dump, f"its {read:,}", +drops | Counter({"redirects": rows["redirects"]}))
    if drops["pages:truncated"] or drops["dump:end_missing"]:
        logger.warning("the dump ends in the middle: %d page was cut", drops["pages:truncated"])
    return result


def check_articles(blocks: Sequence[Block], site: SiteInfo, dump: str, *, profile: str, allow_truncated: bool) -> None:
    """See whether a dump has articles before hours of work. Raises: ValueError: the first pages are all others."""
    counts: Counter[str] = Counter()
    for block in blocks:
        for page in read_pages(
            block, site, counts, profile=profile, allow_truncated=allow_truncated, most=_FIRST_PAGES
        ):
            if isinstance(page, Page):
                return
            counts[f"rejected:{page.reason}"] += 1
        if counts["pages_read"] >= _FIRST_PAGES:
            break
    read = counts.pop("pages_read")
    raise no_article(dump, f"its {'first ' if read >= _FIRST_PAGES else ''}{read:,}", counts)


def no_article(dump: str, pages: str, counts: Mapping[str, int]) -> ValueError:
    """Return the error of a dump that has none, with what its pages are."""
    found = {
        _OTHER_PAGES.get(name, name.replace("rejected:", "rejected as ")): count
        for name, count in counts.items()
        if count and name.startswith(("pages:", "redirects", "rejected:"))
    }
    return ValueError(f"--dump {dump}: no article among {pages} pages ({list_reasons(found)}); {_WANTED}")


class PageExtractor(BlockJob):
    """The work on one block: writes the pages, paragraphs, redirects and rejected pages that begin in it.

    And what templates without a rule cost there, by their names.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.site = SiteInfo.from_dict(arguments["site"])
        self.profile: str = arguments["profile"]
        self.allow_truncated: bool = arguments["allow_truncated"]
        folder = arguments.get("templates")
        self.dumped = TemplatePages(folder) if folder else None
        self.tables = [table for table in TABLES if table != LANGUAGE_LINKS or arguments.get(LANGUAGE_LINKS)]

    def __call__(self, block: Block, folder: str, marker: PageMarker) -> storage.Result:
        counts: Counter[str] = Counter()
        links = 0
        losses: Losses = {}
        failures = storage.Failures()
        paths = {table: f"{table}/{storage.block_name(block.number)}.parquet" for table in self.tables}
        with contextlib.ExitStack() as stack:
            writers = {}
            for table, path in paths.items():
                kind = ParagraphRows if table == "paragraphs" else ParquetRows
                rows_of = storage.parquet_rows(storage.join(folder, path), TABLES[table].schema, kind)
                writers[table] = stack.enter_context(rows_of)
            for page in read_pages(
                block, self.site, counts, profile=self.profile, allow_truncated=self.allow_truncated
            ):
                fatal = marker.begin(page.page_id)
                for table, rows in self.page_rows(page, counts, failures, fatal=fatal).items():
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

    def page_rows(self, page: Page | Rejected, drops: Counter[str], failures: storage.Failures, *, fatal: str) -> Rows:
        """The rows that a page gives, by table ("paragraphs": one entry with all of them).

        `fatal` is the reason for which it is rejected without a look at it, if there is one.
        """
        if isinstance(page, Rejected):
            return {"rejected": [(page.page_id, page.title, page.reason, "", "")]}
        title = normalize_title(page.title, self.site)[0]
        if fatal:
            return {"rejected": [(page.page_id, title, fatal, "", "")]}
        if page.redirect:
            return {"redirects": [(page.page_id, title, *page.redirect)]}
        try:
            extraction = extract(page.text, self.site, title=title, profile=self.profile, dumped=self.dumped)
            disambiguation = is_disambiguation(page.text, self.site)
        except Exception as error:  # whatever a page does to the parser, it does to itself alone
            return {"rejected": [(page.page_id, title, *failures.describe(error))]}
        drops.update(extraction.drops)
        found: Rows = {
            "pages": [(page.page_id, title, disambiguation, len(extraction.texts))],
            "paragraphs": [(page.page_id, title, extraction)],
        }
        if LANGUAGE_LINKS in self.tables:
            links = find_language_links(page.text, self.site)
            found[LANGUAGE_LINKS] = [(page.page_id, title, *link) for link in links]
        return found


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
