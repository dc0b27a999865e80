"""Joins and counts over the extracted pages: redirects, entity vocabulary, mention table."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import storage
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import normalize_title
from workflows.base.parameters import AUTO
from workflows.base.settings import MentionSettings, SparkSettings, VocabularySettings
from workflows.base.stage import Result, Stage, logger
from workflows.engines import spark
from workflows.stages.dump import CorpusStage
from workflows.stages.pages import ExtractPages

if TYPE_CHECKING:
    from pipeline.jobs.entity_vocab import Entities
    from pipeline.lookup.entities import EntityVocab

VOCAB_SIZES = {"demo": 10_000, "small": 32_768, "base": 500_000, "large": 500_000}


class SparkStage(SparkSettings, CorpusStage):
    """A stage whose work is done by Spark."""

    KEEPS = "whole"
    priority = 10  # before Beam's and torch's stages, so that one session serves them all

    def check_needs(self) -> None:
        spark.check_spark(self)

    def extracted(self) -> ExtractPages:
        return self.clone(ExtractPages)

    @property
    def jobs(self) -> Any:
        """The module of Spark jobs; imported when work begins, since pyspark is heavy."""
        from pipeline.jobs import mention_table as jobs_spark

        return jobs_spark

    @property
    def spark(self) -> Any:
        """The module of what all Spark jobs share."""
        from pipeline.jobs import spark

        return spark

    def run(self) -> None:
        """As every stage; the session serves the next one, too."""
        pa.set_memory_pool(pa.system_memory_pool())  # Arrow's own keeps what it has freed
        with spark.spark_work(type(self).__name__):
            super().run()

    def read(self, stage: Stage, table: str) -> Any:
        """A table of a finished stage (a folder or a file of it) as a DataFrame."""
        paths = stage.manifest().paths(stage.folder, table)
        session = spark.spark_session(self, self.fetched().manifest().rows["bytes"])
        return self.spark.read(session, paths, self.parts())

    def parts(self) -> int:
        """How many files a table has: by the size of the extracted paragraphs."""
        extracted = self.extracted()
        paths = extracted.manifest().paths(extracted.folder, "paragraphs/")
        return self.spark.part_count(paths, self.block_bytes())

    def start(self) -> None:
        """Remove what an earlier attempt left unfinished."""
        storage.sweep(self.folder, storage.finished_blocks(self.folder, self.key()))

    def write(
        self, frame: Any, schema: Any, table: str, by: str, order: list[str], **options: int
    ) -> dict[int, storage.Result]:
        """Write a DataFrame as one of the stage's tables; `options` and result are those of `write_parts`."""
        return self.spark.write_parts(
            frame, schema, self.folder, table, self.key(), parts=self.parts(), by=by, order=order, **options
        )


class ResolveRedirects(SparkStage):
    """Every title of a page or redirect, with the page that it ends at."""

    FOLDER = "titles"
    VERSION = 2

    def requires(self) -> dict[str, Stage]:
        return {"ExtractPages": self.extracted()}

    def bytes_parameters(self) -> dict[str, Any]:
        return {"profile": self.profile}

    def work(self) -> Result:
        self.start()
        extracted = self.extracted()
        pages = self.read(extracted, "pages/")
        if twice := self.jobs.find_duplicate(pages):
            raise ValueError(f"--dump {self.dump}: holds the page {twice!r} twice; do its parts overlap?")
        redirects = self.read(extracted, "redirects/")
        max_hops = 1 if self.profile == "paper" else None
        titles = self.spark.keep(self.jobs.resolve_redirects(pages, redirects, max_hops=max_hops))
        blocks = self.write(titles, self.jobs.TITLES_SCHEMA, "titles", "title", ["title"])
        statuses = {row["status"]: row["count"] for row in titles.groupBy("status").count().collect()}
        result = self.result(blocks, statuses=statuses)
        # A page, or another redirect, of the same title stands before a redirect.
        used = result.rows["titles"] - statuses.get("page", 0)
        shadowed = extracted.manifest().rows["redirects"] - used
        return replace(result, drops=+Counter({"redirects:shadowed": shadowed}))


class BuildEntityVocab(VocabularySettings, SparkStage):
    """The entities that the model knows: the corpus's most linked pages, or those of a given vocabulary."""

    FOLDER = "entity_vocab"
    VERSION = 4

    def requires(self) -> dict[str, Stage]:
        return {"ExtractPages": self.extracted(), "ResolveRedirects": self.clone(ResolveRedirects)}

    def size(self) -> int:
        return VOCAB_SIZES[self.preset] if self.vocab_size == AUTO else int(self.vocab_size)

    def takes_missing_pages(self) -> bool:
        """Whether titles without a page can be entities; the demo's 206 pages link to few of each other."""
        is_demo = self.missing_pages == AUTO and self.dump == "demo" and self.profile == "fixed"
        return self.missing_pages == "in" or is_demo

    def bytes_parameters(self) -> dict[str, Any]:
        if self.entity_vocab:
            from pipeline.lookup.entities import vocab_file

            return {"entity_vocab": _sha256("--entity-vocab", vocab_file(self.entity_vocab))}
        return {
            "vocab_size": self.size(),
            "min_count": self.min_count,
            "disambiguation": self.disambiguation,
            "missing_pages": self.takes_missing_pages(),
            "white_list": _sha256("--white-list", self.white_list) if self.white_list else "",
        }

    def check_needs(self) -> None:
        """The vocabulary and the white list can be read, and are not wanted at once."""
        super().check_needs()
        from pipeline.lookup.entities import EntityVocab, read_titles

        if self.takes_missing_pages() and self.profile == "paper":
            raise ValueError(
                "--missing-pages in: --profile paper takes entities that have a page alone; use --profile fixed"
            )
        if self.white_list:
            read_titles(self.white_list)
        if not self.entity_vocab:
            return
        EntityVocab.load(self.entity_vocab)
        defaults = {name: parameter._default for name, parameter in self.get_params()}
        for name in ("vocab_size", "min_count", "disambiguation", "missing_pages", "white_list"):
            if (value := getattr(self, name)) != defaults[name]:
                flag = f"--{name.replace('_', '-')}"
                raise ValueError(f"{flag} {value}: says how to build a vocabulary; --entity-vocab gives one")

    def work(self) -> Result:
        self.start()
        resolved = self.clone(ResolveRedirects)
        pages, titles = self.read(self.extracted(), "pages/"), self.read(resolved, "titles/")
        keep = self.spark.keep
        annotations = keep(self.jobs.links(self.read(self.extracted(), "paragraphs/"), titles))
        counted = keep(self.jobs.count_links(annotations, pages, missing=self.takes_missing_pages()))
        facts = {"links_by_status": self.jobs.link_coverage(annotations)}
        if self.entity_vocab:
            entities = self._given(counted, titles)
        else:
            entities, unknown = self._built(counted, titles)
            facts["white_list_unknown"] = unknown
        self._check_not_empty(entities)
        files = self.jobs.write_vocab(
            entities, self.folder, resolved.manifest().paths(resolved.folder, "titles/")
        )
        facts["links_in_vocab"] = sum(entities.vocab.link_counts)
        rows = {"entities": len(entities.vocab), "aliases": files[-1].rows or 0}
        return Result(tuple(files), rows=rows, drops=+Counter(entities.drops), facts=facts)

    def _check_not_empty(self, entities: "Entities") -> None:
        if entities.ids:
            return
        if left_out := {reason: count for reason, count in entities.drops.items() if count}:
            raise ValueError(f"--dump {self.dump}: no entity is left, all were dropped: {left_out}")
        raise ValueError(
            f"--dump {self.dump}: no link ends at one of its articles, so there is no entity to learn; "
            "take more of the dump"
        )

    def _given(self, counted: Any, titles: Any) -> "Entities":
        from pipeline.lookup.entities import EntityVocab

        vocab = EntityVocab.load(self.entity_vocab, self._site().language)
        entities: Entities = self.jobs.fit_entities(counted, titles, vocab)
        if not entities.ids:
            raise ValueError(
                f"--entity-vocab {self.entity_vocab}: none of its {len(vocab):,} entities is a page of "
                f"--dump {self.dump}; is it another language's?"
            )
        return entities

    def _built(self, counted: Any, titles: Any) -> tuple["Entities", int]:
        """The vocabulary, and how many titles of the white list are none of the dump's."""
        from pipeline.lookup.entities import read_titles

        site = self._site()
        listed = read_titles(self.white_list) if self.white_list else []
        pages = {name: normalize_title(name, site)[0] for name in listed}
        found = self.jobs.pages_of(counted.sparkSession, pages.values(), titles)
        forced = frozenset(found.values())
        if unknown := [name for name in listed if pages[name] not in found]:
            logger.warning("--white-list: not in the dump: %s", ", ".join(map(repr, unknown[:10])))
        if len(forced) > self.size() - 3:
            raise ValueError(
                f"--white-list {self.white_list}: {len(forced):,} entities and the three special ones do not fit "
                f"into --vocab-size {self.size()}"
            )
        entities: Entities = self.jobs.choose_entities(
            counted,
            self.size(),
            min_count=self.min_count,
            forced=forced,
            disambiguation=self.disambiguation == "in",
        )
        return entities, len(unknown)

    def _site(self) -> SiteInfo:
        return SiteInfo.from_dict(self.fetched().manifest().facts["site"])

    def headline(self, manifest: storage.Manifest) -> str:
        total, inside = sum(manifest.facts["links_by_status"].values()), manifest.facts["links_in_vocab"]
        share = inside / total if total else 0
        return f"{super().headline(manifest)} | {inside:,} of {total:,} links ({share:.1%}) end at them"


def _sha256(flag: str, path: str) -> str:
    try:
        return storage.file_sha256(path)
    except OSError as error:
        raise ValueError(f"{flag} {path}: cannot be read ({error.strerror or error})") from None


class BuildMentionTable(MentionSettings, SparkStage):
    """Every anchor text with its targets, link probability and commonness; and the names that each page links by."""

    FOLDER = "mentions"
    VERSION = 4

    def requires(self) -> dict[str, Stage]:
        return {
            "ExtractPages": self.extracted(),
            "ResolveRedirects": self.clone(ResolveRedirects),
            "BuildEntityVocab": self.clone(BuildEntityVocab),
        }

    def bytes_parameters(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "min_links": self.min_links,
            "max_mention_characters": self.max_mention_characters,
        }

    def work(self) -> Result:
        self.start()
        paragraphs = self.read(self.extracted(), "paragraphs/")
        titles = self.read(self.clone(ResolveRedirects), "titles/")
        annotations = self.spark.keep(self.jobs.links(paragraphs, titles))
        longest = self._write_mentions(paragraphs, annotations)
        blocks = self._write_page_names(annotations)
        vocab, dump = self._vocab(), self.fetched().manifest().facts
        facts = {
            "longest_mention": longest,
            "dump": [part["name"] for part in dump["parts"]],
            "language": dump["site"]["language"],
            "entities": len(vocab),
            "entities_sha256": vocab.digest(),
        }
        return self._with_lookups(self.result(blocks, **facts))

    def _vocab(self) -> "EntityVocab":
        from pipeline.lookup.entities import EntityVocab

        return EntityVocab.load(self.clone(BuildEntityVocab).folder)

    def _write_mentions(self, paragraphs: Any, annotations: Any) -> int:
        """Write the mention table; returns how many characters the longest name has."""
        from pipeline.lookup import mentions

        anchors = self.spark.keep(
            self.jobs.count_anchors(
                annotations,
                profile=self.profile,
                min_links=self.min_links,
                max_characters=self.max_mention_characters,
            )
        )
        names = storage.join(self.folder, mentions.NAMES)
        _, longest = self.jobs.write_names(anchors, names)
        entities = self.jobs.entity_titles(
            self.read(self.clone(BuildEntityVocab), "entity_vocab.parquet"),
            self.read(self.extracted(), "pages/"),
        )
        table = self.jobs.count_mentions(
            paragraphs, anchors, entities, names_path=names, longest=longest, profile=self.profile
        )
        self.write(table, mentions.SCHEMA, "mentions", "mention", ["mention", "title"])
        storage.remove(names)
        return int(longest)

    def _write_page_names(self, annotations: Any) -> dict[int, storage.Result]:
        from pipeline.lookup import page_names

        table = self.jobs.page_names(
            annotations,
            self.read(self.extracted(), "pages/"),
            profile=self.profile,
            max_characters=self.max_mention_characters,
        )
        return self.write(
            table,
            page_names.SCHEMA,
            page_names.TABLE,
            "page",
            ["page"],
            first=self.parts(),
            group_rows=page_names.GROUP_ROWS,
        )

    def _with_lookups(self, result: Result) -> Result:
        from pipeline.lookup import mentions, page_names

        def paths(table: str) -> list[str]:
            return [
                storage.join(self.folder, each.path) for each in result.files if each.path.startswith(table)
            ]

        rows, pages = paths("mentions/"), paths(f"{page_names.TABLE}/")
        resolved = self.clone(ResolveRedirects)
        lookup = mentions.write_lookup(self.folder, rows)
        titles = page_names.write_pages(
            self.folder, pages, resolved.manifest().paths(resolved.folder, "titles/")
        )
        drops = {
            # Too long for a mention, or linked too rarely.
            "links:no_mention": self.extracted().manifest().rows["links"]
            - storage.sum_column(rows, "link_count"),
            "names:ambiguous_on_page": storage.sum_column(pages, "ambiguous"),
        }
        counts = {**result.rows, "names": lookup[-1].rows or 0, "titles_of_pages": titles.rows or 0}
        return replace(result, files=(*result.files, *lookup, titles), rows=counts, drops=+Counter(drops))
