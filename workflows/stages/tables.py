"""Joins and counts over the extracted pages: redirects, links, entity vocabulary, mention table, contexts."""

import re
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from pipeline import storage
from pipeline.dump.containers import packed_size
from pipeline.dump.download import is_remote, is_wiki_name
from pipeline.dump.pages import read_site_info
from pipeline.lookup.entities import EntityVocab, vocab_file
from pipeline.mediawiki.site import check_languages
from workflows.base.stage import Result, Stage, logger
from workflows.engines import disk, spark
from workflows.engines.disk import Need
from workflows.run.kinds import AUTO
from workflows.stages.pages import EARLIER_VOCAB, CorpusStage, ExtractPages, FetchDump, FetchQids

if TYPE_CHECKING:
    from pipeline.jobs.spark_parts import SparkJob

_WHOLE_DUMP = re.compile(r"\w+-\d{8}-pages-articles(-multistream)?\.xml")
_SMALL_BYTES = 32 << 20  # of a dump as bzip2 packs it, some 12,000 pages: the smallest whole ones are larger


class SparkStage(CorpusStage):
    """A stage whose work is done by Spark."""

    KEEPS = "blocks"
    NEED: ClassVar[Need]
    priority = 10  # before Beam's and torch's stages, so that one session serves them all

    def process_resources(self) -> dict[str, int]:
        """The resources that luigid gives to one run at a time, unless its configuration says more."""
        return {"spark": 1}

    def check_needs(self) -> None:
        spark.check_spark(self)

    def run(self) -> None:
        """As every stage; the session serves the next one, too."""
        pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps what it has freed
        with spark.spark_work(type(self).__name__):
            super().run()

    def job(self) -> "SparkJob":
        """The input; an earlier attempt's unfinished files are removed. Raises: ValueError: no room for the work."""
        from pipeline.jobs.spark_parts import SparkJob, part_count

        stages, key = self.requires(), storage.digest(self.identity())
        extracted = [(name, stage) for name, stage in stages.items() if isinstance(stage, ExtractPages)]
        dumps = {name.replace("ExtractPages", "FetchDump"): stage.fetched() for name, stage in extracted}
        storage.blocks.sweep(self.folder, storage.blocks.finished_blocks(self.folder, key))
        master = self.settings.machine.spark_master
        is_here = master.startswith("local") or not master
        scratch = spark.scratch_root(self) if is_here else ""
        disk.check_stage(self, self.NEED, sum(stage.manifest().total_bytes for _, stage in extracted), scratch)
        session = spark.session_of(self, sum(stage.manifest().rows["bytes"] for stage in dumps.values()))
        paragraphs = [path for _, stage in extracted for path in stage.manifest().paths(stage.folder, "paragraphs/")]
        folders = {name: stage.folder for name, stage in {**dumps, **stages}.items()}
        job = SparkJob(session, folders, self.folder, key, part_count(paragraphs, self.block_bytes()))
        job.check_workers()
        return job


class ResolveRedirects(SparkStage):
    """Every title of a page or redirect, with the page that it ends at."""

    FOLDER = "titles"
    VERSION = 3
    NEED = Need(written=0.02, scratch=0.1)
    UPSTREAM = (ExtractPages,)
    FIELDS = ("corpus.profile",)

    def work(self) -> Result:
        from pipeline.jobs.tables import redirects

        language = self.fetched().manifest().facts["site"]["language"]
        return redirects.build(self.job(), **self.values("corpus", "profile", "dump"), language=language)


class ResolveLinks(SparkStage):
    """Every annotation with its target after redirects."""

    FOLDER = "links"
    VERSION = 2
    NEED = Need(written=0.35, scratch=0.8)
    UPSTREAM = (ExtractPages, ResolveRedirects)
    FIELDS = ("corpus.profile",)

    def work(self) -> Result:
        from pipeline.jobs.tables import links

        return links.build(self.job(), profile=self.corpus.profile)


class VocabStage(SparkStage):
    """A stage that decides which pages are entities."""

    NEED = Need(written=0.1, scratch=1)

    def requires(self) -> dict[str, Stage]:
        return self.cloned(ExtractPages, ResolveRedirects, ResolveLinks, *([FetchQids] if self.has_qids() else []))

    def takes_missing_pages(self) -> bool:
        """Return whether titles without a page can be entities. The demo's 206 pages link to few of each other."""
        given = self.corpus.missing_pages
        is_demo = self.corpus.dump == "demo" and self.corpus.profile == "fixed"
        return given == "in" or (given == AUTO and is_demo)

    def bytes_parameters(self) -> dict[str, Any]:
        return {"vocab_size": self.corpus.vocab_size, "missing_pages": self.takes_missing_pages()}

    def earlier_vocab(self) -> EntityVocab:
        """The vocabulary of the earlier model whose entities are updated."""
        return EntityVocab.load(storage.join(self.earlier_model, EARLIER_VOCAB))


class MergeEntities(VocabStage):
    """One table of the entities of several wikis: pages of one item at Wikidata are one entity."""

    FOLDER = "entities"
    wiki = 0

    def requires(self) -> dict[str, Stage]:
        wikis = self.of_wikis(FetchQids).items()
        items = {name: stage for name, stage in wikis if isinstance(stage, FetchQids) and stage.has_qids()}
        redirects = [ResolveRedirects] if self.corpus.interlanguage_links else []
        return self.of_wikis(ExtractPages, ResolveLinks, *redirects) | items

    def check_needs(self) -> None:
        super().check_needs()
        if self.earlier_model or self.corpus.entity_vocab:
            raise ValueError("corpus.dump: several wikis get a vocabulary of their own; leave out the given one")
        if not self.is_of_several():
            raise ValueError(f"corpus.dump {self.corpus.dump}: is one wiki; give several, with commas between them")
        if self.corpus.min_languages > len(self.settings.corpus.wikis):
            raise ValueError(f"corpus.min_languages {self.corpus.min_languages}: corpus.dump names fewer wikis")
        if self.corpus.interlanguage_links and self.settings.corpus.page_props not in (AUTO, "none"):
            raise ValueError("corpus.interlanguage_links: stands in for corpus.page_props; leave out one of both")
        of_wikis = [self.clone(FetchDump, wiki=wiki) for wiki in range(len(self.settings.corpus.wikis))]
        names = [each.corpus.dump for each in of_wikis if each.corpus.page_props == AUTO and not each.has_qids()]
        if names and not self.corpus.interlanguage_links:
            raise ValueError(
                f"corpus.dump {names[0]}: a file does not say which pages are one entity; give corpus.page_props of "
                "each wiki, or corpus.interlanguage_links=true, or corpus.page_props=none to keep them apart"
            )
        here = (each for each in of_wikis if not is_remote(each.corpus.dump) or each.complete())
        check_languages([read_site_info(each.paths()[0]).language for each in here])

    def bytes_parameters(self) -> dict[str, Any]:
        return super().bytes_parameters() | self.values("corpus", "min_languages")

    def work(self) -> Result:
        from pipeline.jobs.tables import merged_entities

        chosen = self.bytes_parameters() | self.values("corpus", "interlanguage_links")
        return merged_entities.build(self.job(), wikis=len(self.settings.corpus.wikis), **chosen)


class DiffDumps(VocabStage):
    """A row for each entity of an earlier model, with its page in this dump, and for each new entity."""

    wiki = 0
    FOLDER = "changes"

    def bytes_parameters(self) -> dict[str, Any]:
        earlier = storage.file_sha256(storage.join(self.earlier_model, EARLIER_VOCAB)) if self.earlier_model else ""
        return {"earlier": earlier, **super().bytes_parameters()}

    def check_needs(self) -> None:
        super().check_needs()
        if not self.earlier_model:
            raise ValueError("DiffDumps compares with an earlier model; name it with --update-from")
        self.earlier_vocab()

    def _is_whole(self) -> bool:
        """Return whether the dump is known to be a whole wiki: by the name of the wiki, or of the file."""
        facts = self.fetched().manifest().facts
        names = [part["name"] for part in facts["parts"]]
        is_one = len(names) == 1 and _WHOLE_DUMP.match(names[0]) is not None
        return (is_wiki_name(self.corpus.dump) or is_one) and "truncated" not in facts

    def work(self) -> Result:
        from pipeline.jobs.tables import entity_changes

        chosen = super().bytes_parameters()
        return entity_changes.build(self.job(), old=self.earlier_vocab(), **chosen, is_whole=self._is_whole())

    def headline(self, manifest: storage.Manifest) -> str:
        return ", ".join(f"{count:,} {change}" for change, count in manifest.facts["changes"].items())


class BuildEntityVocab(VocabStage):
    """The entities that the model knows: the corpus's most linked pages, or those of a given vocabulary or model."""

    FOLDER = "entity_vocab"
    VERSION = 7

    def requires(self) -> dict[str, Stage]:
        if self.is_of_several():
            return super().requires() | self.cloned(MergeEntities)
        return super().requires() | (self.cloned(DiffDumps) if self.earlier_model else {})

    def bytes_parameters(self) -> dict[str, Any]:
        if self.is_of_several():  # MergeEntities has them
            return {}
        found = super().bytes_parameters()
        if self.corpus.entity_vocab:
            if self.earlier_model:
                raise ValueError("corpus.entity_vocab and --update-from both give a vocabulary; leave one out")
            path = vocab_file(self.corpus.entity_vocab)
            try:
                return found | {"vocab_size": None, "entity_vocab": storage.file_sha256(path)}
            except OSError as error:
                raise ValueError(f"corpus.entity_vocab {path}: cannot be read ({error.strerror or error})") from None
        return found

    def check_needs(self) -> None:
        """A vocabulary that is given can be read."""
        super().check_needs()
        paths = [] if is_remote(self.corpus.dump) else self.fetched().paths()
        is_left_out = self.corpus.missing_pages == AUTO and not self.takes_missing_pages()
        if is_left_out and paths and sum(map(packed_size, paths)) < _SMALL_BYTES:
            logger.warning(
                "corpus.dump %s is small: if it is a part of a wiki, most links end at pages that it lacks; "
                "--set corpus.missing_pages=in lets these be entities",
                self.corpus.dump,
            )
        if self.corpus.entity_vocab:
            EntityVocab.load(self.corpus.entity_vocab)

    def work(self) -> Result:
        from pipeline.jobs.tables import entity_changes, entity_vocab, merged_entities

        if self.is_of_several():
            return merged_entities.build_vocab(self.job())
        if self.earlier_model:
            return entity_changes.build_vocab(self.job(), self.earlier_vocab())
        chosen = self.values("corpus", "dump", "entity_vocab", "vocab_size")
        return entity_vocab.build(self.job(), **chosen, missing_pages=self.takes_missing_pages())

    def headline(self, manifest: storage.Manifest) -> str:
        total, inside = sum(manifest.facts["links_by_status"].values()), manifest.facts["links_in_vocab"]
        share = inside / total if total else 0
        return f"{super().headline(manifest)} | {inside:,} of {total:,} links ({share:.1%}) end at them"


class BuildMentionTable(SparkStage):
    """Every anchor text with its targets, and how common they are; each page's own names; what titles lead to."""

    FOLDER = "mentions"
    VERSION = 10
    NEED = Need(written=2, scratch=2)
    FIELDS = ("corpus.profile",)

    def requires(self) -> dict[str, Stage]:
        others = [FetchQids] * self.has_qids() + [MergeEntities] * self.is_of_several()  # which a model has, too
        return self.cloned(ExtractPages, ResolveRedirects, ResolveLinks, BuildEntityVocab, *others)

    def work(self) -> Result:
        from pipeline.jobs.tables import mention_table

        return mention_table.build(self.job(), profile=self.corpus.profile)


class BuildContexts(SparkStage):
    """The contexts of each title: words of its page and around links to it, and pages that name it."""

    FOLDER = "contexts"
    VERSION = 4
    NEED = Need(written=4.5, scratch=8)
    UPSTREAM = (ExtractPages, ResolveRedirects)
    FIELDS = ("corpus.held_out",)

    def work(self) -> Result:
        from pipeline.jobs.tables import contexts

        return contexts.build(self.job(), held_out=self.corpus.held_out)
