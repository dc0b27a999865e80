"""From paragraphs, a dump's or LinkDocuments', to sharded sequences of word and entity ids."""

import functools
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from model.hf import hub
from model.pretraining.recipes import SCRATCH
from pipeline import storage
from pipeline.lookup.entities import ALIASES, EntityVocab
from pipeline.sequences.tokenizer_files import tokenizer_files, tokenizer_names
from workflows.base import terminal
from workflows.base.stage import Result, Stage, given_manifest
from workflows.engines import beam
from workflows.engines.disk import Need
from workflows.run.tables import Sequences
from workflows.stages.pages import CorpusStage, ExtractPages, FetchDump
from workflows.stages.tables import BuildEntityVocab, MergeEntities


class TrainTokenizer(CorpusStage):
    """A byte-level BPE tokenizer in RoBERTa's format, when none is given."""

    TABLES = ("corpus", "sequences", "machine")

    FOLDER = "tokenizer"
    VERSION = 3
    wiki = 0

    def requires(self) -> dict[str, Stage]:
        return self.of_wikis(ExtractPages)

    def bytes_parameters(self) -> dict[str, Any]:
        sequences = self.settings.sequences
        return {"vocab_size": sequences.tokenizer_size, "characters": sequences.tokenizer_characters}

    def work(self) -> Result:
        from pipeline.sequences import tokenizer_training

        extracted = self.requires().values()
        paths = [path for stage in extracted for path in stage.manifest().paths(stage.folder, "paragraphs/")]
        with terminal.progress_bar(self.title, unit="paragraph") as show:
            return tokenizer_training.build(paths, self.folder, **self.bytes_parameters(), progress=show)


class TokenizedStage(CorpusStage):
    """A stage that uses the tokenizer: the given one, the base model's, or one trained on the corpus."""

    TABLES: ClassVar[tuple[str, ...]] = ("corpus", "sequences", "pretraining", "machine")

    @property
    def sequences(self) -> Sequences:
        """The values of the run for the tokenizer and the sequences."""
        return self.settings.sequences

    @property
    def base_model(self) -> str:
        """The model that pretraining starts from."""
        return self.settings.pretraining.base_model

    def given_tokenizer(self) -> str:
        """The tokenizer that the user gave: a folder, or a name at Hugging Face; empty where there is none."""
        if self.sequences.tokenizer:
            return os.path.abspath(self.sequences.tokenizer)  # a cluster's workers have other working folders
        if self.earlier_model:
            return self.earlier_model
        return "" if self.base_model == SCRATCH else self.base_model

    def _weights_parameter(self) -> str:
        """The field in which the user named a model, for errors."""
        return "pretraining.base_model"

    def tokenizer_requires(self) -> dict[str, Stage]:
        return {} if self.given_tokenizer() else self.cloned(TrainTokenizer)

    def tokenizer_folder(self) -> str:
        """The tokenizer's folder; that of a name at Hugging Face is fetched."""
        given = self.given_tokenizer()
        if not given:
            return storage.join(self.clone(TrainTokenizer).folder, "tokenizer")
        if os.path.isdir(given):
            return os.path.abspath(given)
        model = hub.find_model(given, self._weights_parameter())
        return hub.fetch(model, tokenizer_names(model.files, f"{model.identity} {model.place}").values())

    def tokenizer_identity(self) -> dict[str, str]:
        """SHA-256 of a given tokenizer's files, or its revision at Hugging Face; a trained one is an upstream stage."""
        given = self.given_tokenizer()
        if not given:
            return {}
        if not self.sequences.tokenizer and not os.path.isdir(given):
            model = hub.find_model(given, self._weights_parameter())
            return dict.fromkeys(tokenizer_names(model.files, f"{model.identity} {model.place}"), model.identity)
        files = tokenizer_files(Path(given))
        return {name: storage.file_sha256(str(path)) for name, path in files.items()}


class BuildSequences(TokenizedStage, beam.BeamStage):
    """Word and entity ids, packed into sequences, in Arrow shards."""

    FOLDER = "sequences"
    VERSION = 7
    NEED = Need(written=1.05)
    KEEPS = "blocks"

    def _annotated(self) -> storage.Manifest:
        """The manifest of `annotated`. Raises: ValueError for a folder of another stage than LinkDocuments."""
        return given_manifest("sequences.annotated", self.sequences.annotated, "LinkDocuments")

    def texts(self) -> tuple[list[str], int, str]:
        """The files of paragraphs, how many pages they are from, and which parameter names them."""
        found, source = [], f"sequences.annotated {self.sequences.annotated}"
        if not self.sequences.annotated or self.sequences.annotated_place == "beside":
            extracted = self.clone(ExtractPages)
            found, source = [(extracted.manifest(), extracted.folder)], f"corpus.dump {self.corpus.dump}"
        if self.sequences.annotated:
            found.append((self._annotated(), os.path.abspath(self.sequences.annotated)))
        paths = [path for manifest, folder in found for path in manifest.paths(folder, "paragraphs/")]
        return paths, sum(manifest.rows["pages"] for manifest, _ in found), source

    def limits(self) -> dict[str, int]:
        """Sizes of sequences, mentions and sentences."""
        from pipeline.sequences.packing import Limits

        return asdict(Limits(max_words=self.sequences.max_words))

    def requires(self) -> dict[str, Stage]:
        return self.cloned(ExtractPages, BuildEntityVocab) | self.tokenizer_requires()

    def bytes_parameters(self) -> dict[str, Any]:
        from pipeline.sequences.sentences import splitter_identity

        annotated = {}
        if self.sequences.annotated:
            self._annotated()
            if self.is_of_several():
                raise ValueError("sequences.annotated: its texts are of one language; give corpus.dump one wiki")
            annotated = {"annotated": storage.manifest_sha256(self.sequences.annotated)}
            annotated |= self.values("sequences", "annotated_place")
        return {
            **annotated,
            **self.values("corpus", "profile", "held_out"),
            "limits": self.limits(),
            "tokenizer": self.tokenizer_identity(),
            "sentence_splitter": splitter_identity(self.sequences.sentence_splitter),
        }

    def check_limits(self, made: Result) -> None:
        from pipeline.jobs.build_sequences import check_drops

        _, pages, _ = self.texts()
        check_drops(made, pages, self.corpus.max_rejected, self.sequences.max_dropped_sentences)

    def work(self) -> Result:
        from pipeline.jobs import build_sequences
        from pipeline.sequences.packing import Limits

        vocab = self.clone(BuildEntityVocab)
        paths, _, source = self.texts()
        settings = build_sequences.Settings(
            tokenizer=self.tokenizer_folder(),
            aliases=storage.join(vocab.folder, ALIASES),
            language=self.clone(FetchDump).manifest().facts["site"]["language"],
            limits=Limits(**self.limits()),
            profile=self.corpus.profile,
            splitter=self.sequences.sentence_splitter,
            held_out=self.corpus.held_out,
        )
        run, others = functools.partial(beam.run_beam, self), self.is_of_several()
        titles = EntityVocab.load(vocab.folder).titles
        return build_sequences.build(
            run, paths, self.folder, settings, check=self.check_limits, titles=titles, source=source, has_others=others
        )


class MergeSequences(TokenizedStage):
    """The sequences of several wikis in one folder, of which pretraining draws from each language its share."""

    FOLDER = "sequences"
    TABLES = BuildSequences.TABLES
    FIELDS = ("sequences.language_exponent",)
    wiki = 0

    def requires(self) -> dict[str, Stage]:
        return self.of_wikis(BuildSequences) | self.cloned(MergeEntities) | self.tokenizer_requires()

    def work(self) -> Result:
        from pipeline.jobs import merge_sequences
        from pipeline.jobs.tables.merged_entities import titles

        stages = [self.clone(BuildSequences, wiki=wiki) for wiki in range(len(self.settings.corpus.wikis))]
        sources = {stage.manifest().facts["language"]: stage.folder for stage in stages}
        named, tokenizer = titles(self.clone(MergeEntities).folder), self.tokenizer_folder()
        exponent = self.sequences.language_exponent
        return merge_sequences.build(sources, self.folder, titles=named, tokenizer=tokenizer, exponent=exponent)


def own_sequences(stage: CorpusStage) -> BuildSequences | MergeSequences:
    """The stage of the sequences that a run's models see."""
    return stage.clone(MergeSequences if stage.is_of_several() else BuildSequences)
