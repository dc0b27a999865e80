"""Joins and counts over the extracted pages: redirects, entity vocabulary, mention table."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pipeline import storage
from workflows import engines
from workflows.extraction import CorpusStage, ExtractPages
from workflows.parameters import AUTO
from workflows.stage import Result, Stage

VOCAB_SIZES = {"demo": 10_000, "base": 500_000, "large": 500_000}


class SparkStage(CorpusStage):
    """A stage whose work is done by Spark."""

    KEEPS = "whole"
    priority = 10  # before Beam's and torch's stages, so that one session serves them all

    def check_needs(self) -> None:
        engines.check_java()  # also a cluster's driver runs here

    def extracted(self) -> ExtractPages:
        return self.clone(ExtractPages)

    @property
    def jobs(self) -> Any:
        """The module of Spark jobs; imported when work begins, since pyspark is heavy."""
        from pipeline import jobs_spark

        return jobs_spark

    def read(self, stage: Stage, table: str) -> Any:
        """A table of a finished stage (a folder or a file of it) as a DataFrame."""
        paths = stage.manifest().paths(stage.folder, table)
        session = engines.spark_session(self, self.fetched().manifest().rows["bytes"])
        return self.jobs.read(session, paths, self.parts())

    def parts(self) -> int:
        """How many files a table has: by the size of the extracted paragraphs."""
        extracted = self.extracted()
        paths = extracted.manifest().paths(extracted.folder, "paragraphs/")
        return self.jobs.part_count(paths, self.block_bytes())

    def start(self) -> None:
        """Remove what an earlier attempt left unfinished."""
        storage.sweep(self.folder, storage.finished_blocks(self.folder, self.key()))

    def write(
        self, frame: Any, schema: Any, table: str, by: str, order: list[str]
    ) -> dict[int, storage.BlockRecord]:
        """Write a DataFrame as one of the stage's tables."""
        return self.jobs.write_parts(
            frame, schema, self.folder, table, self.key(), parts=self.parts(), by=by, order=order
        )


class ResolveRedirects(SparkStage):
    """Every title of a page or redirect, with the page that it ends at."""

    FOLDER = "titles"

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
        titles = self.jobs.resolve_redirects(
            pages,
            self.read(extracted, "redirects/"),
            max_hops=1 if self.profile == "paper" else None,
        ).persist()
        blocks = self.write(titles, self.jobs.TITLES_SCHEMA, "titles", "title", ["title"])
        statuses = {row["status"]: row["count"] for row in titles.groupBy("status").count().collect()}
        titles.unpersist()
        result = self.result(blocks, statuses=statuses)
        # A page, or another redirect, of the same title stands before a redirect.
        used = result.rows["titles"] - statuses.get("page", 0)
        shadowed = extracted.manifest().rows["redirects"] - used
        return replace(result, drops=+Counter({"redirects:shadowed": shadowed}))


class BuildEntityVocab(SparkStage):
    """The entities that the model knows."""

    FOLDER = "entity_vocab"

    def requires(self) -> dict[str, Stage]:
        return {"ExtractPages": self.extracted(), "ResolveRedirects": self.clone(ResolveRedirects)}

    def size(self) -> int:
        return VOCAB_SIZES[self.preset] if self.vocab_size == AUTO else int(self.vocab_size)

    def bytes_parameters(self) -> dict[str, Any]:
        return {"vocab_size": self.size()}

    def work(self) -> Result:
        self.start()
        resolved = self.clone(ResolveRedirects)
        pages = self.read(self.extracted(), "pages/")
        annotations = self.jobs.links(
            self.read(self.extracted(), "paragraphs/"), self.read(resolved, "titles/")
        ).persist()
        vocab, candidates = self.jobs.build_vocab(annotations, pages, self.size())
        if len(vocab) == 3:
            raise ValueError(
                f"--dump {self.dump}: no link ends at one of its articles, so there is no entity to learn; "
                "take more of the dump"
            )
        files = self.jobs.write_vocab(
            vocab, self.folder, resolved.manifest().paths(resolved.folder, "titles/")
        )
        coverage = self.jobs.link_coverage(annotations)
        annotations.unpersist()
        return Result(
            tuple(files),
            rows={"entities": len(vocab), "aliases": files[-1].rows or 0},
            drops=+Counter({"entities:below_vocab_size": candidates - len(vocab) + 3}),
            facts={"links_by_status": coverage, "links_in_vocab": sum(vocab.link_counts)},
        )

    def headline(self, manifest: storage.Manifest) -> str:
        total, inside = sum(manifest.facts["links_by_status"].values()), manifest.facts["links_in_vocab"]
        return (
            f"{super().headline(manifest)} | {inside:,} of {total:,} links ({inside / total:.1%}) end at them"
        )


class BuildMentionTable(SparkStage):
    """Every anchor text with its targets, link probability and commonness."""

    FOLDER = "mentions"
    min_links: ClassVar[int] = 1

    def requires(self) -> dict[str, Stage]:
        return {
            "ExtractPages": self.extracted(),
            "ResolveRedirects": self.clone(ResolveRedirects),
            "BuildEntityVocab": self.clone(BuildEntityVocab),
        }

    def bytes_parameters(self) -> dict[str, Any]:
        return {"profile": self.profile, "min_links": self.min_links}

    def work(self) -> Result:
        self.start()
        from pipeline import mentions

        vocab = self.clone(BuildEntityVocab)
        paragraphs = self.read(self.extracted(), "paragraphs/")
        annotations = self.jobs.links(paragraphs, self.read(self.clone(ResolveRedirects), "titles/"))
        entities = self.read(vocab, "entity_vocab.parquet").select("title", "entity_id")
        names = storage.join(self.folder, mentions.NAMES)
        table = self.jobs.count_mentions(
            paragraphs, annotations, entities, names, profile=self.profile, min_links=self.min_links
        )
        blocks = self.write(table, mentions.SCHEMA, "mentions", "mention", ["mention", "title"])
        result = self.result(blocks)
        count = len(mentions.Names(names))
        left_out = self.extracted().manifest().rows["links"] - self._counted_links(blocks)
        files = (*result.files, storage.describe(self.folder, mentions.NAMES, count))
        drops = +Counter({"links:no_mention": left_out})  # too long for a mention, or linked too rarely
        return Result(files, {**result.rows, "names": count}, drops, result.facts)

    def _counted_links(self, blocks: Mapping[int, storage.BlockRecord]) -> int:
        paths = [
            storage.join(self.folder, entry.path) for record in blocks.values() for entry in record.files
        ]
        return sum(row["link_count"] for path in paths for row in storage.read_rows(path, ["link_count"]))
