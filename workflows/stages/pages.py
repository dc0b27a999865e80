"""The dump, and from it pages, paragraphs with links, redirects, rejected pages and lost templates.

ReadTemplates comes before ExtractPages where the dump's own templates are shown. FetchQids comes behind it.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import luigi

from pipeline import storage
from pipeline.dump import fetch, fetch_qids
from pipeline.dump.containers import TruncatedDump, packed_size
from pipeline.dump.download import Source, is_remote, is_wiki_name
from pipeline.dump.page_props import PageProps
from pipeline.mediawiki.wiki_rules import read_rules
from pipeline.storage.failures import check_pages, reasons_of
from workflows.base import terminal
from workflows.base.stage import Result, Stage
from workflows.engines import beam
from workflows.engines.disk import Need
from workflows.run.kinds import AUTO
from workflows.run.tables import Corpus

EARLIER_VOCAB = "entity_vocab.parquet"


def find_exported(folder: str) -> str:
    """The exported model of a folder: of a work directory, an ExportHuggingFace, a BuildLinker, or itself.

    Raises: ValueError: there is none with its vocabulary.
    """
    places = [folder, storage.join(folder, "model")]
    if os.path.isdir(folder) and "ExportHuggingFace" in storage.finished_stages(folder):
        places.append(storage.join(storage.finished_folder(folder, "ExportHuggingFace"), "model"))
    for place in places:
        names = ("model.safetensors", "pretraining.json", EARLIER_VOCAB)
        if all(os.path.isfile(storage.join(place, name)) for name in names):
            return os.path.abspath(place)
    raise ValueError(
        f"--update-from {folder}: no exported model with {EARLIER_VOCAB}; give a work directory whose last "
        "ExportHuggingFace is whole (not lite), its folder, or that of a BuildLinker; run it again if it is older"
    )


class CorpusStage(Stage):
    """A stage of the corpus, or one downstream of it: of one wiki, or of all where it has no parameter `wiki`."""

    wiki = luigi.IntParameter(default=0, description="of several dumps, the number of the wiki's, from 0 on")

    @property
    def title(self) -> str:
        return f"{super().title} {self.wiki}" if self.wiki else super().title

    @property
    def corpus(self) -> Corpus:
        """The values of the run for the corpus of its wiki, or of the first one."""
        wikis = self.settings.corpus.wikis
        if not 0 <= self.wiki < len(wikis):
            raise ValueError(f"--wiki {self.wiki}: corpus.dump names {len(wikis)}, which are numbered from 0 on")
        return wikis[self.wiki]

    def values(self, table: str, *names: str) -> dict[str, Any]:
        if table == "corpus":
            return {name: getattr(self.corpus, name) for name in names}
        return super().values(table, *names)

    def is_of_several(self) -> bool:
        """Return whether the run has several wikis."""
        return len(self.settings.corpus.wikis) > 1

    def of_wikis(self, *stages: type[Stage]) -> dict[str, Stage]:
        """These stages of each wiki, by their names with its number; of a single one by their names."""
        if not self.is_of_several():
            return self.cloned(*stages)
        numbers = range(len(self.settings.corpus.wikis))
        return {f"{each.__name__} {wiki}": self.clone(each, wiki=wiki) for wiki in numbers for each in stages}

    @functools.cached_property
    def earlier_model(self) -> str:
        """The folder of the exported model whose entities this dump updates; empty where there is none."""
        source = self.corpus.update_from
        if source and os.path.realpath(source) == os.path.realpath(self.workdir):
            raise ValueError(f"--update-from {source}: is the work directory itself; give --workdir another one")
        return find_exported(source) if source else ""

    def fetched(self) -> "FetchDump":
        return self.clone(FetchDump)

    def block_bytes(self) -> int:
        """`block_size`; auto: 1/64 of the dump between 2 MiB and 16 MiB, as a power of two.

        A block ends with a page that begins in it, so its reader decompresses a bzip2 block (some 250 KB of the file)
        of the next one, too: small blocks are read twice.
        """
        if self.corpus.block_size != AUTO:
            return int(self.corpus.block_size)
        size = int(self.fetched().manifest().rows["bytes"])
        return min(16 << 20, max(2 << 20, 1 << (size // 64).bit_length()))

    def has_qids(self) -> bool:
        """Return whether there are items of Wikidata to fetch."""
        given = "none" if self.corpus.interlanguage_links else self.corpus.page_props
        return is_wiki_name(self.corpus.dump) if given == AUTO else given != "none"


class FetchDump(CorpusStage):
    """The files of the dump: found or downloaded, measured, and checked for being complete."""

    FOLDER = "dump"
    VERSION = 3
    KEEPS = "unfinished"  # downloads go on where they stopped

    def bytes_parameters(self) -> dict[str, Any]:
        if is_remote(self.corpus.dump):
            return {"dump": self.corpus.dump}
        return {"parts": [[source.name, source.size] for source in fetch.find_parts(self.corpus.dump)]}

    def is_current(self) -> bool:
        """Local files have to be the ones that were measured."""
        return super().is_current() and (
            is_remote(self.corpus.dump) or fetch.is_unchanged(fetch.find_parts(self.corpus.dump), self.folder)
        )

    def check_limits(self, made: Result) -> None:
        if "truncated" in made.facts and not self.corpus.allow_truncated:
            raise TruncatedDump(made.facts["truncated"])

    def paths(self) -> list[str]:
        """The dump's files, in their order."""
        if not is_remote(self.corpus.dump):
            return [source.location for source in fetch.find_parts(self.corpus.dump)]
        return [os.path.abspath(path) for path in self.manifest().paths(self.folder, "parts/")]

    def work(self) -> Result:
        progress = functools.partial(terminal.progress_bar, unit="B")
        truncated = self.corpus.allow_truncated
        return fetch.build(self.corpus.dump, self.folder, allow_truncated=truncated, progress=progress)


class DumpReader(CorpusStage, beam.BeamStage):
    """A stage that reads the dump."""

    def own_rules(self, name: str) -> dict[str, str]:
        """The user's own rules for the wiki by this name; what the stage writes depends on them, not on their place."""
        path = self.corpus.wiki_rules
        rules = read_rules(path) if path not in ("", "none") else ""
        return {name: rules} if rules else {}

    def bytes_of(self, path: str) -> float:
        return packed_size(path)

    def read(self, build: Callable[..., Result], **options: Any) -> Result:
        """Build the stage by a job over the dump, which takes these options besides."""
        run, paths = functools.partial(beam.run_beam, self), self.fetched().paths()
        options["site"] = self.fetched().manifest().facts["site"] | self.own_rules("rules")
        options |= self.values("corpus", "allow_truncated")
        return build(run, paths, self.block_bytes(), self.folder, **options)


class ReadTemplates(DumpReader):
    """The dump's own templates: bodies of text and parameters, and redirects."""

    FOLDER = "templates"
    VERSION = 2
    NEED = Need(written=0.1)
    KEEPS = "blocks"
    UPSTREAM = (FetchDump,)

    def bytes_parameters(self) -> dict[str, Any]:
        return self.values("corpus", "block_size", "allow_truncated") | self.own_rules("wiki_rules")

    def work(self) -> Result:
        from pipeline.jobs import read_templates

        return self.read(read_templates.build)


class ExtractPages(DumpReader):
    """Pages, paragraphs with their links, redirects, rejected pages and what templates cost."""

    FOLDER = "pages"
    VERSION = 11
    NEED = Need(written=1.45)  # of a dump in bzip2
    KEEPS = "blocks"

    def requires(self) -> dict[str, Stage]:
        return self.cloned(FetchDump, *([ReadTemplates] if self.corpus.dump_templates else []))

    def bytes_parameters(self) -> dict[str, Any]:
        found = self.values("corpus", "profile", "block_size", "allow_truncated") | self.own_rules("wiki_rules")
        return found | (self.values("corpus", "interlanguage_links") if self.corpus.interlanguage_links else {})

    def check_limits(self, made: Result) -> None:
        check_pages(reasons_of(made.drops), made.facts["pages_read"], self.corpus.max_rejected)

    def check_needs(self) -> None:
        super().check_needs()
        if self.corpus.dump_templates and self.corpus.profile == "paper":
            raise ValueError("corpus.dump_templates: profile paper shows no template; use profile fixed")

    def work(self) -> Result:
        from pipeline.jobs import extract_pages

        chosen = self.values("corpus", "profile", "dump", "interlanguage_links")
        templates = self.clone(ReadTemplates).folder if self.corpus.dump_templates else ""
        return self.read(extract_pages.build, **chosen, templates=templates)


class FetchQids(CorpusStage):
    """The items of Wikidata that the dump's pages are linked to, and its disambiguation pages; made only where
    page_props or a wiki's name gives the table page_props.
    """

    FOLDER = "qids"
    VERSION = 3
    KEEPS = "unfinished"  # a download goes on where it stopped
    UPSTREAM = (FetchDump, ExtractPages)

    def bytes_parameters(self) -> dict[str, Any]:
        if self.corpus.page_props == AUTO:
            return {"page_props": AUTO}
        return {"page_props": [[source.name, source.size] for source in self.given()]}

    def given(self) -> list[Source]:
        """The file that the user gives. Raises: ValueError: there is no such file."""
        path = self.corpus.page_props
        if not os.path.isfile(path):
            raise ValueError(f"corpus.page_props {path}: no such file; wanted page_props.sql or .sql.gz, none or auto")
        return [Source(os.path.basename(path), os.path.abspath(path), os.path.getsize(path))]

    def is_current(self) -> bool:
        """A file that was given has to be the one that was read."""
        if not super().is_current():
            return False
        return self.corpus.page_props == AUTO or fetch.is_unchanged(self.given(), self.folder)

    def check_needs(self) -> None:
        """There is a file to read."""
        super().check_needs()
        if not self.has_qids():
            raise ValueError(f"corpus.page_props {self.corpus.page_props}: FetchQids has nothing to read; give a file")
        if self.corpus.page_props != AUTO:
            with PageProps(self.corpus.page_props, fetch_qids.PROPERTIES):
                pass

    def work(self) -> Result:
        fetched, extracted = self.fetched().manifest(), self.clone(ExtractPages)
        is_fetched = self.corpus.page_props == AUTO
        if is_fetched:
            progress = functools.partial(terminal.progress_bar, unit="B")
            path = fetch_qids.fetch(fetched.facts["parts"][0]["name"], self.folder, progress)
        else:
            path = self.given()[0].location
            fetch.keep_locations(self.given(), self.folder)
        pages = extracted.manifest().paths(extracted.folder, "pages/")
        dbname = fetched.facts["site"]["dbname"]
        result = fetch_qids.build(path, self.folder, pages, dbname, is_fetched=is_fetched)
        if is_fetched:
            storage.remove(path)
        return result
