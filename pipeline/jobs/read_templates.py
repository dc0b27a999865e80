"""ReadTemplates: the dump in; the templates out that are text and parameters alone, and those that redirect."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from pipeline import schemas, storage
from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import Page, Rejected, read_pages
from pipeline.mediawiki.languages import TEMPLATE
from pipeline.mediawiki.site import SiteInfo
from pipeline.storage.blocks import Block, BlockJob, PageMarker, RunBlocks
from pipeline.storage.tries import TextMap, write_numbered
from pipeline.wikitext.templates.bodies import MOST_CHARACTERS, compile_body, transcluded
from pipeline.wikitext.templates.table import fold

logger = logging.getLogger("pipeline")

BODIES, LOOKUP = "bodies.arrow", "lookup.tries"
_SCHEMA = schemas.TABLES["ReadTemplates"]["templates"].schema
_ROWS_PER_BATCH = 4096
Row = tuple[str, str, str]  # name, body, name that it redirects to


def build(
    run: RunBlocks, paths: Sequence[str], block_bytes: int, folder: str, *, site: dict[str, Any], allow_truncated: bool
) -> storage.Result:
    """Write the table `templates` block by block, then all of it as one that is looked up by name.

    `site` is what FetchDump says of the wiki. Raises: ValueError: the dump is damaged.
    """
    arguments = {"site": site, "allow_truncated": allow_truncated}
    result = storage.merge_blocks(run(TemplateReader, plan_blocks(paths, block_bytes), arguments))
    if not sum(result.rows.values()):
        logger.warning("corpus.dump_templates: the dump has no template that can be used")
    tables = (storage.read_batches(path, rows=_ROWS_PER_BATCH) for path in result.paths(folder))
    named = ((batch.column(0).to_pylist(), batch) for batch in chain.from_iterable(tables))
    lookup = write_numbered(folder, BODIES, _SCHEMA, LOOKUP, named)
    # Of pages with one name, as a damaged dump has them, the last is found.
    same_name = Counter({"templates:same_name": sum(result.rows.values()) - (lookup[1].rows or 0)})
    return replace(result, files=(*result.files, *lookup), drops={**result.drops, **+same_name})


class TemplateReader(BlockJob):
    """The work on one block: writes the templates that begin in it."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.site = SiteInfo.from_dict(arguments["site"])
        self.allow_truncated: bool = arguments["allow_truncated"]

    def __call__(self, block: Block, folder: str, marker: PageMarker) -> storage.Result:
        counts: Counter[str] = Counter()
        path = f"templates/{storage.block_name(block.number)}.parquet"
        rows: Counter[str] = Counter(templates=0, redirects=0)
        with storage.parquet_rows(storage.join(folder, path), _SCHEMA) as table:
            for page in read_pages(block, self.site, counts, allow_truncated=self.allow_truncated, wanted=TEMPLATE):
                row = marker.begin(page.page_id) or template_row(page, self.site)
                if isinstance(row, str):
                    counts[f"templates:{row}"] += 1
                else:
                    rows["redirects" if row[2] else "templates"] += 1
                    table.extend([row])
        facts = {"pages_read": counts.pop("pages_read", 0)}
        return storage.Result((storage.describe(folder, path, table.count),), dict(rows), +counts, facts)


def template_row(page: Page | Rejected, site: SiteInfo) -> Row | str:
    """The row of a template's page, or the reason why it has none."""
    if isinstance(page, Rejected):
        return page.reason
    if page.redirect:
        target = page.redirect[0]
        leads_on = site.namespace_of(target) == TEMPLATE
        return (_name(page.title, site), "", _name(target, site)) if leads_on else "redirect_elsewhere"
    body = transcluded(page.text)
    if len(body) > MOST_CHARACTERS:
        return "too_long"
    try:
        compile_body(body)
    except ValueError:
        return "not_simple"
    return _name(page.title, site), body, ""


def _name(title: str, site: SiteInfo) -> str:
    """The name in a title, whose namespace is that of templates in the wiki's words, as `TemplateTable` asks for it."""
    return fold(title.partition(":")[2], keeps_case=site.case == "case-sensitive")


class TemplatePages:
    """The finished table, memory-mapped: the body and the redirect of a name (`DumpTemplates`)."""

    def __init__(self, folder: str) -> None:
        """Open the stage's folder. Raises: ValueError: a file is not complete."""
        self._rows = TextMap(storage.join(folder, LOOKUP))
        self._columns = storage.open_arrow(storage.join(folder, BODIES)).columns[1:]

    def __call__(self, name: str) -> tuple[str, str] | None:
        number = self._rows.get(name)
        if number is None:
            return None
        body, target = (column[number].as_py() for column in self._columns)
        return body, target
