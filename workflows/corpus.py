"""From the dump to sharded sequences: fetch, extract, redirects, vocabulary, mentions, tokenizer, sequences."""

import importlib.util
import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipeline import download, dump, storage
from pipeline.titles import SiteInfo
from workflows import engines
from workflows.parameters import AUTO
from workflows.stage import SCRATCH, Result, Stage, check_share

logger = logging.getLogger("workflows")

VOCAB_SIZES = {"demo": 10_000, "base": 500_000, "large": 500_000}
TOKENIZER_SIZES = {"demo": 8_192, "base": 50_265, "large": 50_265}
SEQUENCE_LIMITS = {"max_words": 512, "max_entities": 128, "max_mention_words": 30, "min_sentence_words": 5}
_DEMO_FILE = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
WORD_STARTS = "word_starts.arrow"
_LOCATIONS = "locations.json"


def demo_dump() -> str:
    """Where the package gensim keeps its Wikipedia excerpt; the package is not imported.

    Raises:
        ValueError: it is not installed.
    """
    spec = importlib.util.find_spec("gensim")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = os.path.join(folder, _DEMO_FILE)
        if os.path.isfile(path):
            return path
    raise ValueError(
        "--dump demo: comes with gensim 4.4.0 (`pip install --no-deps gensim==4.4.0`); or pass a dump"
    )


class FetchDump(Stage):
    """The files of the dump: found or downloaded, measured, and looked at for being whole."""

    FOLDER = "dump"
    RESUMES: ClassVar[bool] = True  # downloads go on where they stopped

    @property
    def _is_remote(self) -> bool:
        return download.is_remote(self.dump)

    def _local_sources(self) -> list[download.Source]:
        return download.local_sources(demo_dump() if self.dump == "demo" else self.dump)

    def bytes_parameters(self) -> dict[str, Any]:
        if self._is_remote:
            return {"dump": self.dump}
        return {"parts": [[source.name, source.size] for source in self._local_sources()]}

    def is_current(self) -> bool:
        """Local files have to be the ones that were measured: by path, size and time of change."""
        if not super().is_current():
            return False
        return self._is_remote or self._locations() == _locate(self._local_sources())

    def _locations(self) -> dict[str, Any]:
        try:
            return json.loads(storage.read_bytes(storage.join(self.folder, _LOCATIONS)))
        except (FileNotFoundError, ValueError):
            return {}

    def paths(self) -> list[str]:
        """The dump's files, in their order."""
        locations = self._locations()
        return [locations[part["name"]]["path"] for part in self.manifest().facts["parts"]]

    def work(self) -> Result:
        if self._is_remote:
            if storage.is_url(self.workdir):
                raise ValueError(
                    f"--workdir {self.workdir}: a dump is downloaded to a local folder; pass a local one"
                )
            sources = self._download()
        else:
            sources = self._local_sources()
        for source in sources:
            self._check(source.location)
        site = dump.read_site_info(sources[0].location)
        parts = [
            {
                "name": source.name,
                "bytes": os.path.getsize(source.location),
                "sha256": storage.file_sha256(source.location),
            }
            for source in sources
        ]
        storage.write_bytes(
            storage.join(self.folder, _LOCATIONS), json.dumps(_locate(sources), ensure_ascii=False).encode()
        )
        files = (
            [storage.describe(self.folder, f"parts/{source.name}") for source in sources]
            if self._is_remote
            else []
        )
        total = sum(os.path.getsize(source.location) for source in sources)
        facts = {"parts": parts, "site": site.to_dict()}
        return Result(tuple(files), rows={"files": len(parts), "bytes": total}, facts=facts)

    def _check(self, path: str) -> None:
        try:
            dump.check_end(path)
        except dump.TruncatedDump as error:
            if not self.allow_truncated:
                raise
            logger.warning("%s", error)

    def _download(self) -> list[download.Source]:
        sources = []
        for source in download.remote_sources(self.dump):
            name = os.path.basename(source.name)
            path = os.path.join(self.folder, "parts", name)
            if not os.path.exists(path):
                with engines.progress_bar(f"download {name}", unit="B") as show:
                    download.download(source, path, show)
            sources.append(download.Source(name, os.path.abspath(path), os.path.getsize(path)))
        return sources


def _locate(sources: list[download.Source]) -> dict[str, Any]:
    return {
        source.name: {"path": source.location, "mtime_ns": os.stat(source.location).st_mtime_ns}
        for source in sources
    }


class CorpusStage(Stage):
    """A stage that cuts its work by the dump's size."""

    def fetched(self) -> FetchDump:
        return self.clone(FetchDump)

    def block_bytes(self) -> int:
        """`--block-size`; auto: 1/64 of the dump between 256 KiB and 16 MiB, as a power of two."""
        if self.block_size != AUTO:
            return int(self.block_size)
        size = int(self.fetched().manifest().rows["bytes"])
        return min(16 << 20, max(256 << 10, 1 << (size // 64).bit_length()))

    def key(self) -> str:
        """Digest of all that decides the stage's bytes: committed blocks with another key are not reused."""
        return storage.digest(self.identity())

    def result(self, blocks: Mapping[int, storage.BlockRecord], **facts: Any) -> Result:
        """All blocks together."""
        merged = storage.merge_blocks(blocks)
        return Result(merged.files, merged.rows, merged.drops, {**merged.facts, **facts})


class ExtractPages(CorpusStage):
    """Pages, paragraphs with their links, redirects and rejected pages."""

    FOLDER = "pages"
    RESUMES = True

    def requires(self) -> dict[str, Stage]:
        return {"FetchDump": self.fetched()}

    def bytes_parameters(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "block_size": self.block_size,
            "allow_truncated": self.allow_truncated,
        }

    def work(self) -> Result:
        fetched = self.fetched()
        blocks = dump.plan_blocks(fetched.paths(), self.block_bytes())
        arguments = {
            "site": fetched.manifest().facts["site"],
            "profile": self.profile,
            "allow_truncated": self.allow_truncated,
        }
        result = self.result(engines.run_beam(self, "extract_pages", blocks, arguments))
        self._check(result)
        return result

    def _check(self, result: Result) -> None:
        read, rows, drops = result.facts["pages_read"], result.rows, Counter(result.drops)
        check_share("pages", rows["rejected"], read, self.max_rejected, "--max-rejected")
        dropped = sum(count for reason, count in drops.items() if reason.startswith("paragraphs:"))
        check_share(
            "paragraphs",
            dropped,
            rows["paragraphs"] + dropped,
            self.max_dropped_paragraphs,
            "--max-dropped-paragraphs",
        )
        if not rows["pages"]:
            raise ValueError(
                f"--dump {self.dump}: no article among its {read:,} pages ({rows['redirects']:,} redirects, "
                f"{drops['pages:other_namespace']:,} in other namespaces); wanted a dump of articles"
            )
        if drops["pages:truncated"] or drops["dump:end_missing"]:
            logger.warning("the dump ends in the middle: %d page was cut", drops["pages:truncated"])


class SparkStage(CorpusStage):
    """A stage whose work is done by Spark."""

    RESUMES = True
    priority = 10  # before Beam's and torch's stages, so that one session serves them all

    def check_needs(self) -> None:
        if not self.spark_master or self.spark_master.startswith("local"):
            engines.check_java()

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
        titles = self.jobs.resolve_redirects(
            self.read(extracted, "pages/"),
            self.read(extracted, "redirects/"),
            max_hops=1 if self.profile == "paper" else None,
        ).persist()
        blocks = self.write(titles, self.jobs.TITLES_SCHEMA, "titles", "title", ["title"])
        statuses = {row["status"]: row["count"] for row in titles.groupBy("status").count().collect()}
        titles.unpersist()
        return self.result(blocks, statuses=statuses)


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
                f"--dump {self.dump}: no link ends at one of its articles, so there is no entity to learn"
            )
        files = self.jobs.write_vocab(
            vocab, self.folder, resolved.manifest().paths(resolved.folder, "titles/")
        )
        coverage = self.jobs.link_coverage(annotations)
        annotations.unpersist()
        return Result(
            tuple(files),
            rows={"entities": len(vocab), "aliases": files[-1].rows or 0},
            drops={"entities:below_vocab_size": max(0, candidates - len(vocab) + 3)},
            facts={"links_by_status": coverage, "links_in_vocab": sum(vocab.link_counts)},
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
        files = (*result.files, storage.describe(self.folder, mentions.NAMES, count))
        return Result(files, {**result.rows, "names": count}, result.drops, result.facts)


class TrainTokenizer(CorpusStage):
    """A byte-level BPE tokenizer in RoBERTa's format, when none is given."""

    FOLDER = "tokenizer"

    def requires(self) -> dict[str, Stage]:
        return {"ExtractPages": self.clone(ExtractPages)}

    def bytes_parameters(self) -> dict[str, Any]:
        return {"vocab_size": TOKENIZER_SIZES[self.preset]}

    def work(self) -> Result:
        from pipeline.tokens import WordTokenizer, train_tokenizer

        engines.need_local(self.workdir, type(self).__name__)
        extracted = self.clone(ExtractPages)
        paths = extracted.manifest().paths(extracted.folder, "paragraphs/")
        texts = (row["text"] for path in paths for row in storage.read_rows(path, ["text"]))
        with storage.atomic_folder(os.path.join(self.folder, "tokenizer")) as aside:
            train_tokenizer(texts, aside, TOKENIZER_SIZES[self.preset])
        names = sorted(os.listdir(os.path.join(self.folder, "tokenizer")))
        size = WordTokenizer.load(os.path.join(self.folder, "tokenizer")).vocab_size
        return Result(
            tuple(storage.describe(self.folder, f"tokenizer/{name}") for name in names),
            rows={"word_types": size},
        )


class TokenizedStage(CorpusStage):
    """A stage that uses the tokenizer: the given one, the base model's, or one trained on the corpus."""

    def given_tokenizer(self) -> str:
        """Folder of the tokenizer that the user gave, or empty."""
        if self.tokenizer:
            return self.tokenizer
        return "" if self.base_model == SCRATCH else engines.model_folder(self.base_model)

    def tokenizer_requires(self) -> dict[str, Stage]:
        return {} if self.given_tokenizer() else {"TrainTokenizer": self.clone(TrainTokenizer)}

    def tokenizer_folder(self) -> str:
        return self.given_tokenizer() or storage.join(self.clone(TrainTokenizer).folder, "tokenizer")

    def tokenizer_identity(self) -> dict[str, str]:
        """SHA-256 of each file of a given tokenizer; a trained one counts as an upstream stage."""
        given = self.given_tokenizer()
        if not given:
            return {}
        from pipeline.tokens import tokenizer_files

        names = ("vocab.json", "merges.txt")
        files = tokenizer_files(Path(given))
        return {name: storage.file_sha256(str(path)) for name, path in zip(names, files, strict=True)}


class BuildSequences(TokenizedStage):
    """Word and entity ids, packed into sequences, in Arrow shards."""

    FOLDER = "sequences"
    RESUMES = True

    def check_needs(self) -> None:
        engines.need_local(self.workdir, type(self).__name__)

    def requires(self) -> dict[str, Stage]:
        return {
            "ExtractPages": self.clone(ExtractPages),
            "BuildEntityVocab": self.clone(BuildEntityVocab),
            **self.tokenizer_requires(),
        }

    def bytes_parameters(self) -> dict[str, Any]:
        return {"profile": self.profile, "limits": SEQUENCE_LIMITS, "tokenizer": self.tokenizer_identity()}

    def work(self) -> Result:
        from pipeline.entities import ALIASES
        from pipeline.shards import write_word_starts
        from pipeline.tokens import WordTokenizer

        extracted, vocab = self.clone(ExtractPages), self.clone(BuildEntityVocab)
        site = SiteInfo.from_dict(self.clone(FetchDump).manifest().facts["site"])
        paths = extracted.manifest().paths(extracted.folder, "paragraphs/")
        blocks = [
            dump.Block(number, path, 0, storage.file_size(path) or 0) for number, path in enumerate(paths)
        ]
        arguments = {
            "tokenizer": self.tokenizer_folder(),
            "aliases": storage.join(vocab.folder, ALIASES),
            "limits": SEQUENCE_LIMITS,
            "language": site.language,
            "profile": self.profile,
        }
        records = engines.run_beam(self, "build_sequences", blocks, arguments)
        tokenizer = WordTokenizer.load(self.tokenizer_folder())
        with storage.atomic_path(storage.join(self.folder, WORD_STARTS)) as aside:
            count = write_word_starts(aside, tokenizer.word_starts())
        result = self.result(
            records,
            **{
                name: getattr(tokenizer, name) for name in ("cls_id", "sep_id", "pad_id", "mask_id", "unk_id")
            },
            special_ids=sorted(tokenizer.special_ids),
            word_vocab_size=tokenizer.vocab_size,
            entity_vocab_size=vocab.manifest().rows["entities"],
            language=site.language,
            **SEQUENCE_LIMITS,
        )
        self._check(result)
        word_starts = storage.describe(self.folder, WORD_STARTS, count)
        return Result((*result.files, word_starts), result.rows, result.drops, result.facts)

    def _check(self, result: Result) -> None:
        drops = Counter(result.drops)
        dropped = drops["sentences:too_short"] + drops["sentences:too_long"]
        check_share(
            "sentences",
            dropped,
            result.facts["sentences"],
            self.max_dropped_sentences,
            "--max-dropped-sentences",
        )
        if not result.rows.get("sequences"):
            raise ValueError(
                f"--dump {self.dump}: no sequence with an entity came out of {result.facts['sentences']:,} sentences"
            )


def copy_tokenizer(source: str, target: Path) -> None:
    """Copy a tokenizer's two files into a folder, under transformers' names."""
    from pipeline.tokens import tokenizer_files

    target.mkdir(parents=True, exist_ok=True)
    for path, name in zip(tokenizer_files(Path(source)), ("vocab.json", "merges.txt"), strict=True):
        shutil.copyfile(path, target / name)
