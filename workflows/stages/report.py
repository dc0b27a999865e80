"""The report on the dump, each stage's rows and drops, training and results."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import luigi

from model.pretraining.recipes import values_text
from pipeline import storage
from workflows.base.stage import RUN_RECORD, Result, Stage, Step, logger
from workflows.report import training_curves
from workflows.report.corpus import corpus_figures, wiki_rows
from workflows.report.linking import LINKED_TEXTS, SCORES, STAGE, linked_texts
from workflows.report.overview import funnel
from workflows.report.paper.comparison import Compared, compare
from workflows.report.rendering import render_page, render_tables
from workflows.report.several import PAGE, RESULTS, shown_settings
from workflows.run.tables import TABLES
from workflows.stages import pretraining
from workflows.stages.experiments import EXPERIMENTS, FineTuneGrid
from workflows.stages.languages import FIGURES, EvaluateLanguages
from workflows.stages.linking.evaluation import BuildLinker, EvaluateLinking
from workflows.stages.pages import CorpusStage
from workflows.stages.tables import BuildEntityVocab, BuildMentionTable

PRETRAININGS = ("Pretrain", "PretrainRoberta")


class Report(CorpusStage):
    """One page (`index.html`), its tables as Markdown (`tables.md`), its figures as data (`results.json`).

    The page alone shows times and machines. It is no file of the manifest, as a pretraining's log is none: the
    manifest's files have the same bytes whenever they are made.
    """

    FOLDER = "report"
    wiki = 0
    VERSION = 21
    TABLES = tuple(TABLES)

    whole = luigi.BoolParameter(
        parsing=luigi.BoolParameter.EXPLICIT_PARSING,
        description="show the corpus, Pretrain and the linking of texts in any case, not only what a fine-tuning "
        "starts from",
    )

    def requires(self) -> dict[str, Stage]:
        grid = self.clone(FineTuneGrid)
        own = type(pretraining.own_model(self))
        always: list[type[Stage]] = [BuildMentionTable, own] if self.whole else []
        used = grid.requires()
        candidates: list[type[Stage]] = [BuildMentionTable, own, pretraining.PretrainRoberta]
        shown = [stage for stage in candidates if stage in always or stage.__name__ in used]
        if own in shown:
            shown += [EvaluateLinking] + [EvaluateLanguages] * self.is_of_several()
        return {**self.cloned(*shown), "FineTuneGrid": grid}

    def bytes_parameters(self) -> dict[str, Any]:
        return {"setting": self.setting()}

    def setting(self) -> dict[str, Any]:
        """The settings that the report names: those of a pretraining where it shows one."""
        stages = self.requires()
        own = [stage for stage in stages.values() if isinstance(stage, pretraining.PretrainingStage)]
        if not own:
            return {"profile": self.corpus.profile}
        return {
            "profile": self.corpus.profile,
            "preset": own[0].configuration.preset,
            "changes": values_text(own[0].configuration.changes()),
            "base_model": pretraining.base_model_name(own[0].configuration.base_model),
            **self.values("pretraining", "seed"),
        }

    def is_current(self) -> bool:
        """The page has to be there, too."""
        return super().is_current() and storage.file_size(storage.join(self.folder, PAGE)) is not None

    def work(self) -> Result:
        content = self.content()
        compared = compare(content["cells"])
        results = {**content, "compared": asdict(compared)}
        texts = {
            RESULTS: json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n",
            "tables.md": render_tables(content, compared),
        }
        self.write_texts({**texts, PAGE: self.page(content, compared)})
        return Result(tuple(storage.describe(self.folder, name) for name in sorted(texts)))

    def stages(self) -> list[Stage]:
        """All that made what the report shows, the cells of the grid before the grid."""
        *others, grid = self.upstream()
        return [*others, *self.clone(FineTuneGrid).finished(), grid]

    def by_name(self, wiki: int = 0) -> dict[str, Stage]:
        """All upstream stages by their names, of several wikis those of this one; those of all are the first one's.

        That of the run's own LUKE is Pretrain also where it was updated.
        """
        return {
            ("Pretrain" if isinstance(stage, pretraining.Pretrain) else type(stage).__name__): stage
            for stage in self.upstream()
            if getattr(stage, "wiki", 0) == wiki
        }

    def content(self) -> dict[str, Any]:
        """All figures that the report shows, as data; None for `corpus`, `training` and `linking` that it lacks."""
        stages, found = self.stages(), self.by_name()
        corpus = corpus_figures(found)
        runs = {name: found[name].folder for name in PRETRAININGS if name in found}
        evaluated = found["EvaluateLanguages"].read_json(FIGURES) if "EvaluateLanguages" in found else {}
        wikis = wiki_rows([self.by_name(wiki) for wiki in range(len(evaluated))], evaluated)
        return {
            "setting": {
                "dump": [name for row in wikis for name in row["files"]]
                or ([part["name"] for part in corpus["dump_parts"]] if corpus else []),
                "language": ", ".join(evaluated) or (corpus["language"] if corpus else ""),
                **self.setting(),
            },
            "wikis": wikis,
            "stages": [_stage_row(stage) for stage in stages],
            "corpus": corpus,
            "funnel": funnel(found),
            "training": {name: training_curves.pretraining(folder) for name, folder in runs.items()} or None,
            "answers": answers_of(found["Pretrain"]) if "Pretrain" in found else [],
            "linking": found[STAGE].read_json(SCORES) if STAGE in found else None,
            "cells": self.clone(FineTuneGrid).read_json(EXPERIMENTS)["cells"],
        }

    def page(self, content: Mapping[str, Any], compared: Compared) -> str:
        """The page: the figures, linked texts, and times."""
        found = self.by_name()
        runs = {os.path.basename(stage.folder): _run_record(stage) for stage in self.stages()}
        speeds = {name: training_curves.speed(found[name].folder) for name in content["training"] or ()}
        others = {"linked": linked_texts(found), "settings": shown_settings(self.settings)}
        return render_page(content, compared, runs=runs, speeds=speeds, **others)


class RunExperiments(Step, luigi.WrapperTask):
    """The grid of fine-tunings, and the report that lays it beside the paper's tables."""

    TABLES = Report.TABLES

    def report(self) -> Report:
        return self.clone(Report)

    def requires(self) -> dict[str, Stage]:
        return {"Report": self.report()}

    @property
    def where(self) -> str:
        """The report's page."""
        return storage.join(self.report().folder, PAGE)

    def run(self) -> None:
        """Raises: ValueError where a fine-tuning failed; all others are in the report."""
        if EvaluateLinking.__name__ in self.report().requires():
            logger.info("linked texts: %s#%s", self.where, LINKED_TEXTS)
        logger.info("report: %s", self.where)
        if failed := self.clone(FineTuneGrid).manifest().facts["failed"]:
            raise ValueError(
                f"{failed} of the fine-tunings failed, see {self.where}; the same command tries them again"
            )


class RunAll(RunExperiments):
    """Everything, from the dump to the report."""

    def report(self) -> Report:
        return self.clone(Report, whole=True)

    def requires(self) -> dict[str, Stage]:
        report = self.report()
        return {**self.cloned(pretraining.ExportHuggingFace), **report.of_wikis(BuildLinker), "Report": report}


def answers_of(pretrain: Stage) -> list[dict[str, Any]]:
    """The answers of a pretrained LUKE to some held-out mentions."""
    from pipeline.sequences.tokenizer import WordTokenizer

    assert isinstance(pretrain, pretraining.Pretrain)
    found = pretrain.clone(BuildEntityVocab).read_json("entity_vocab.json")
    titles = sorted(found, key=lambda title: found[title])
    return training_curves.answers(pretrain.folder, WordTokenizer.load(pretrain.tokenizer_folder()), titles)


def _stage_row(stage: Stage) -> dict[str, Any]:
    manifest = stage.manifest()
    return {
        "stage": stage.title,
        "version": manifest.version,
        "folder": os.path.basename(stage.folder),
        "drops": dict(sorted(manifest.drops.items(), key=lambda drop: (-drop[1], drop[0]))),
        "files": len(manifest.files),
        "bytes": manifest.total_bytes,
        **{name: dict(getattr(manifest, name)) for name in ("rows", "parameters", "inputs")},
    }


def _run_record(stage: Stage) -> dict[str, Any]:
    """When, how long and with what a stage ran; nothing where its record is gone."""
    size = storage.file_size(storage.join(stage.folder, RUN_RECORD))
    record: dict[str, Any] = stage.read_json(RUN_RECORD) if size else {}
    return record
