"""The names by which each page links to others: what is known of the names in a text that comes from the page.

A name that links to several pages from one page is left out there, as in the paper's appendix on SQuAD; targets are
those after redirects. `page_names/*.parquet` has a row for each page, `pages.tries` says which one, by the page's title
and by every redirect to it.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import storage
from pipeline.lookup.entities import alias_rows
from pipeline.storage.tries import TextMap, write_numbers

TABLE = "page_names"
PAGES = "pages.tries"
GROUP_ROWS = 64  # of a row group: what is read to find a page


class LinkedNames:
    """The names by which a page links, in memory, to be looked for; `titles` has the title of each name's target."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        import marisa_trie

        self.titles = titles
        self.longest = max(map(len, titles), default=0)
        self._trie = marisa_trie.Trie(titles)

    def prefixes(self, text: str) -> list[str]:
        """The names with which the text begins, the shortest first."""
        found: list[str] = self._trie.prefixes(text)
        return found


class PageNames:
    """Looks a page's names up; the table stays on disk, and where each page is in it is memory-mapped."""

    def __init__(self, folder: str, manifest: storage.Manifest) -> None:
        """Open what BuildMentionTable wrote into its folder, whose manifest is given."""
        files = [entry for entry in manifest.files if entry.path.startswith(f"{TABLE}/")]
        self._paths = [storage.join(folder, entry.path) for entry in files]
        self._firsts = list(accumulate((entry.rows or 0 for entry in files), initial=0))
        self._rows = TextMap(storage.join(folder, PAGES))

    def __contains__(self, page: str) -> bool:
        return page in self._rows

    def get(self, page: str) -> LinkedNames | None:
        """The names of the page of this title or redirect; None where there is none.

        Raises: ValueError: the file cannot be read, or its content has changed since it was written.
        """
        number = self._rows.get(page)
        if number is None:
            return None
        file = bisect_right(self._firsts, number) - 1
        group, row = divmod(number - self._firsts[file], GROUP_ROWS)
        try:
            table = pq.ParquetFile(self._paths[file], memory_map=True, page_checksum_verification=True)
            names = table.read_row_group(group, columns=["names"]).column(0)[row].as_py()
        except (pa.ArrowException, OSError) as error:
            raise ValueError(
                f"{self._paths[file]}: not readable as Parquet ({error}); delete it and run its stage again"
            ) from error
        return LinkedNames({each["mention"]: each["title"] for each in names})


def write_pages(folder: str, tables: Sequence[str], titles: Sequence[str]) -> storage.FileEntry:
    """Write which row of the table each title and redirect leads to.

    Rows are numbered in the order of `tables`; no title is there twice. `titles` are the files of that table.
    """
    own = storage.join(folder, f"own_{PAGES}")
    pages = enumerate(storage.read_tuples(tables, ["page"]))
    write_numbers(own, ((page, number) for number, (page,) in pages))
    number = write_numbers(storage.join(folder, PAGES), alias_rows(titles, TextMap(own)))
    storage.remove(own)
    return storage.describe(folder, PAGES, number)
