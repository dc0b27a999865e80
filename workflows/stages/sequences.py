"""From paragraphs to sharded sequences of word and entity ids."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import storage
from pipeline.dump.containers import Block
from pipeline.mediawiki.site import SiteInfo
from pipeline.sequences.shards import WORD_STARTS
from pipeline.sequences.statistics import STATISTICS
from workflows.base.settings import SCRATCH, PresetSettings, SequenceSettings, TokenizerSettings
from workflows.base.stage import Result, Stage, check_share
from workflows.engines import beam, hub
from workflows.stages.dump import CorpusStage, FetchDump
from workflows.stages.pages import ExtractPages
from workflows.stages.tables import BuildEntityVocab

TOKENIZER_SIZES = {"demo": 8_192, "small": 16_384, "base": 50_265, "large": 50_265}
LIMITS = ("max_words", "max_entities", "max_mention_words", "min_sentence_words")


class TrainTokenizer(PresetSettings, CorpusStage):
    """A byte-level BPE tokenizer in RoBERTa's format, when none is given."""

    FOLDER = "tokenizer"

    def requires(self) -> dict[str, Stage]:
        return {"ExtractPages": self.clone(ExtractPages)}

    def bytes_parameters(self) -> dict[str, Any]:
        return {"vocab_size": TOKENIZER_SIZES[self.preset]}

    def work(self) -> Result:
        from pipeline.sequences.tokenizer import WordTokenizer, train_tokenizer

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


class TokenizedStage(TokenizerSettings, CorpusStage):
    """A stage that uses the tokenizer: the given one, the base model's, or one trained on the corpus."""

    def given_tokenizer(self) -> str:
        """Folder of the tokenizer that the user gave, or empty."""
        if self.tokenizer:
            return os.path.abspath(self.tokenizer)  # a cluster's workers have other working folders
        return "" if self.base_model == SCRATCH else hub.model_folder(self.base_model, "--base-model")

    def tokenizer_requires(self) -> dict[str, Stage]:
        return {} if self.given_tokenizer() else {"TrainTokenizer": self.clone(TrainTokenizer)}

    def tokenizer_folder(self) -> str:
        return self.given_tokenizer() or storage.join(self.clone(TrainTokenizer).folder, "tokenizer")

    def tokenizer_identity(self) -> dict[str, str]:
        """SHA-256 of each file of a given tokenizer; a trained one counts as an upstream stage."""
        given = self.given_tokenizer()
        if not given:
            return {}
        from pipeline.sequences.tokenizer_files import tokenizer_files

        files = tokenizer_files(Path(given))
        return {name: storage.file_sha256(str(path)) for name, path in files.items()}


class BuildSequences(SequenceSettings, TokenizedStage, beam.BeamStage):
    """Word and entity ids, packed into sequences, in Arrow shards."""

    FOLDER = "sequences"
    VERSION = 2
    KEEPS = "whole"

    def check_needs(self) -> None:
        beam.check_beam_options(self)
        from pipeline.sequences.packing import Limits
        from pipeline.sequences.sentences import find_splitter

        find_splitter(self.sentence_splitter)
        Limits(**self.limits())

    def requires(self) -> dict[str, Stage]:
        return {
            "ExtractPages": self.clone(ExtractPages),
            "BuildEntityVocab": self.clone(BuildEntityVocab),
            **self.tokenizer_requires(),
        }

    def limits(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in LIMITS}

    def bytes_parameters(self) -> dict[str, Any]:
        from pipeline.sequences.sentences import splitter_identity

        return {
            "profile": self.profile,
            "limits": self.limits(),
            "tokenizer": self.tokenizer_identity(),
            "sentence_splitter": splitter_identity(self.sentence_splitter),
            "held_out": self.held_out,
        }

    def work(self) -> Result:
        from pipeline.lookup.entities import ALIASES

        extracted, vocab = self.clone(ExtractPages), self.clone(BuildEntityVocab)
        site = SiteInfo.from_dict(self.clone(FetchDump).manifest().facts["site"])
        paths = extracted.manifest().paths(extracted.folder, "paragraphs/")
        blocks = [Block(number, path, 0, storage.file_size(path) or 0) for number, path in enumerate(paths)]
        arguments = {
            "tokenizer": self.tokenizer_folder(),
            "aliases": storage.join(vocab.folder, ALIASES),
            "limits": self.limits(),
            "language": site.language,
            "splitter": self.sentence_splitter,
            "profile": self.profile,
            "held_out": self.held_out,
        }
        records = beam.run_beam(self, "build_sequences", blocks, arguments)
        entities = vocab.manifest().rows["entities"]
        result = self.result(records, entity_vocab_size=entities, language=site.language, **self.limits())
        self._check(result)
        return self._with_tables(result)

    def _with_tables(self, result: Result) -> Result:
        """With the table of word starts, the facts about the tokenizer that the model needs, and the statistics."""
        from pipeline.sequences.shards import HELD_OUT, SEEN, write_word_starts
        from pipeline.sequences.statistics import describe_sequences
        from pipeline.sequences.tokenizer import WordTokenizer

        tokenizer = WordTokenizer.load(self.tokenizer_folder())
        with storage.atomic_path(storage.join(self.folder, WORD_STARTS)) as aside:
            count = write_word_starts(aside, tokenizer.word_starts())
        parts = {
            part: [entry.path for entry in result.files if entry.path.startswith(f"{part}/")]
            for part in (SEEN, HELD_OUT)
        }
        statistics = {
            part: describe_sequences([storage.join(self.folder, path) for path in paths])
            for part, paths in parts.items()
        }
        text = json.dumps({**statistics, "drops": result.drops}, sort_keys=True, indent=1)
        storage.write_bytes(storage.join(self.folder, STATISTICS), text.encode() + b"\n")
        ids = ("cls_id", "sep_id", "pad_id", "mask_id", "unk_id")
        facts = {
            **result.facts,
            **{name: getattr(tokenizer, name) for name in ids},
            "special_ids": sorted(tokenizer.special_ids),
            "word_vocab_size": tokenizer.vocab_size,
        }
        files = (
            *result.files,
            storage.describe(self.folder, STATISTICS),
            storage.describe(self.folder, WORD_STARTS, count),
        )
        return replace(result, files=files, facts=facts)

    def _check(self, result: Result) -> None:
        read = result.facts.get("sentences_read", 0)
        failed = {reason: count for reason, count in result.drops.items() if reason.startswith("pages:")}
        pages = self.clone(ExtractPages).manifest().rows["pages"]
        check_share("pages", failed, pages, self.max_rejected, "--max-rejected")
        drops = {reason: result.drops.get(f"sentences:{reason}", 0) for reason in ("too_short", "too_long")}
        check_share("sentences", drops, read, self.max_dropped_sentences, "--max-dropped-sentences")
        if not result.rows.get("sequences"):
            if held_out := result.rows.get("held_out"):
                raise ValueError(
                    f"--held-out {self.held_out}: all {held_out:,} sequences are held out, none is left for training"
                )
            raise ValueError(
                f"--dump {self.dump}: no sequence with an entity came out of its {read:,} sentences"
            )
