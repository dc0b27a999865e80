"""The report: what went in, what each stage kept and dropped, how training went, what came out."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pipeline import storage
from tasks.finetuning.variants import VARIANTS
from workflows.base import parameters
from workflows.base.stage import RUN_RECORD, Result, Stage, logger
from workflows.report import corpus as corpus_view
from workflows.report import training_curves
from workflows.report.comparison import Compared, compare
from workflows.report.html import TEMPLATES, render_page
from workflows.report.latex import render_latex
from workflows.report.paper_settings import pretraining_configuration
from workflows.stages.experiments import FineTuneGrid, GridSettings
from workflows.stages.pretraining import ExportHuggingFace, Pretrain, PretrainRoberta
from workflows.stages.tables import BuildMentionTable

PAGE = "index.html"
PRETRAININGS = ("Pretrain", "PretrainRoberta")


class Report(GridSettings, Stage):
    """One page (`index.html`), its tables as Markdown and LaTeX (`tables.md`, `tables.tex`), its figures as data
    (`results.json`).

    The page alone shows times and machines. It stands beside what the manifest lists, as a pretraining's log does: what
    the manifest lists has the same bytes whenever it is made.
    """

    FOLDER = "report"
    VERSION = 4

    corpus = parameters.OneOf(
        "auto",
        "in",
        default="auto",
        description="whether the corpus and both pretrainings are shown; auto: those that a fine-tuning starts from",
    )

    def grid(self) -> FineTuneGrid:
        return self.clone(FineTuneGrid)

    def requires(self) -> dict[str, Stage]:
        grid = self.grid()
        shown: list[type[Stage]] = [BuildMentionTable, Pretrain, PretrainRoberta]
        if self.corpus == "auto":
            used = grid.requires()
            shown = [stage for stage in shown if stage.__name__ in used]
        return {**{stage.__name__: self.clone(stage) for stage in shown}, "FineTuneGrid": grid}

    def bytes_parameters(self) -> dict[str, Any]:
        return {"setting": self.setting()}

    def setting(self) -> dict[str, Any]:
        """What of the settings the report names: those of a pretraining where it shows one."""
        pretraining = {
            "preset": self.preset,
            "base_model": os.path.basename(os.path.normpath(self.base_model)),
            "seed": self.seed,
        }
        own = any(name in self.requires() for name in PRETRAININGS)
        return {"profile": self.profile, **(pretraining if own else {})}

    def is_current(self) -> bool:
        """The page has to be there, too."""
        return super().is_current() and storage.file_size(storage.join(self.folder, PAGE)) is not None

    def work(self) -> Result:
        content, compared = self.content(), self.compared()
        results = {**content, "compared": asdict(compared)}
        texts = {
            "results.json": json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n",
            "tables.md": render_tables(content, compared),
            "tables.tex": render_latex(compared),
        }
        for name, text in {**texts, PAGE: self.page(content, compared)}.items():
            storage.write_bytes(storage.join(self.folder, name), text.encode("utf-8", "replace"))
        return Result(tuple(storage.describe(self.folder, name) for name in sorted(texts)))

    def stages(self) -> list[Stage]:
        """All that made what the report shows, the cells of the grid before the grid."""
        *below, grid = self.walk()[:-1]
        return [*below, *self.grid().finished(), grid]

    def below(self) -> dict[str, Stage]:
        """The stages that the report stands on, by their names."""
        return {type(stage).__name__: stage for stage in self.walk()[:-1]}

    def content(self) -> dict[str, Any]:
        """All figures that the report shows, as data; `corpus` and `training` are None where there is none."""
        stages, below = self.stages(), self.below()
        corpus = corpus_content(below)
        runs = {name: below[name].folder for name in PRETRAININGS if name in below}
        return {
            "setting": {
                "dump": [part["name"] for part in corpus["dump_parts"]] if corpus else [],
                "language": corpus["language"] if corpus else "",
                **self.setting(),
            },
            "stages": [_stage_row(stage) for stage in stages],
            "corpus": corpus,
            "training": {name: training_curves.pretraining(folder) for name, folder in runs.items()} or None,
            "cells": self.grid().records(),
        }

    def compared(self) -> Compared:
        """The paper's tables with ours beside them."""
        below = self.below()
        used = {
            name: pretraining_configuration(
                self.preset,
                entities=name == "Pretrain",
                config=json.loads(storage.read_bytes(storage.join(below[name].folder, "config.json"))),
                max_words=self.max_words,
            )
            for name in PRETRAININGS
            if name in below
        }
        return compare(self.grid().records(), used)

    def page(self, content: Mapping[str, Any], compared: Compared) -> str:
        """The page: the figures, what to read and search in the corpus, and times."""
        below = self.below()
        runs = {os.path.basename(stage.folder): _run_record(stage) for stage in self.stages()}
        speeds = {name: training_curves.speed(below[name].folder) for name in content["training"] or ()}
        corpus = corpus_browser(below) if content["corpus"] else {}
        shown = {**corpus, "runs": runs, "speeds": speeds, "settings": self.to_str_params()}
        return render_page(content, compared, **shown)


class RunExperiments(GridSettings, Stage):
    """The grid of fine-tunings, and the report that lays it beside the paper's tables."""

    FOLDER = "report"

    variants = parameters.ListOf(
        parameters.OneOf(*VARIANTS, default="luke", description=""),
        default=",".join(VARIANTS),
        description="rows of tasks/finetuning/variants.py",
    )
    seeds = parameters.ListOf(
        parameters.IntegerParameter(default=1, description=""),
        default="1,2,3",
        description="seeds of fine-tuning",
    )

    def report(self) -> Report:
        return self.clone(Report)

    def requires(self) -> dict[str, Stage]:
        return {"Report": self.report()}

    @property
    def where(self) -> str:
        """The report's page."""
        path = storage.join(self.report().folder, PAGE)
        return path if storage.is_url(path) else os.path.abspath(path)

    def complete(self) -> bool:
        return all(stage.complete() for stage in self.requires().values())

    def run(self) -> None:
        """Raises: ValueError where a fine-tuning failed; all others are in the report."""
        logger.info("report: %s", self.where)
        if failed := self.report().grid().failed():
            raise ValueError(
                f"{failed} of the fine-tunings failed, see {self.where}; the same command tries them again"
            )


class RunAll(RunExperiments):
    """Everything, from the dump to the report."""

    variants = GridSettings.variants
    seeds = GridSettings.seeds

    def report(self) -> Report:
        return self.clone(Report, corpus="in")

    def requires(self) -> dict[str, Stage]:
        return {"ExportHuggingFace": self.clone(ExportHuggingFace), "Report": self.report()}


def _stage_row(stage: Stage) -> dict[str, Any]:
    manifest = stage.manifest()
    return {
        "stage": stage.title,
        "version": manifest.version,
        "folder": os.path.basename(stage.folder),
        "rows": dict(manifest.rows),
        "drops": dict(sorted(manifest.drops.items(), key=lambda drop: (-drop[1], drop[0]))),
        "files": len(manifest.files),
        "bytes": sum(entry.bytes for entry in manifest.files),
        "parameters": dict(manifest.parameters),
        "inputs": dict(manifest.inputs),
    }


def _run_record(stage: Stage) -> dict[str, Any]:
    """When, how long and with what a stage ran; nothing where its record is gone."""
    path = storage.join(stage.folder, RUN_RECORD)
    record: dict[str, Any] = json.loads(storage.read_bytes(path)) if storage.file_size(path) else {}
    return record


def corpus_content(stages: Mapping[str, Stage]) -> dict[str, Any] | None:
    """Figures of the corpus; None where the report stands on no mention table."""
    if "BuildMentionTable" not in stages:
        return None
    fetched = stages["FetchDump"].manifest().facts
    vocab, mentions = stages["BuildEntityVocab"], stages["BuildMentionTable"]
    sequences = stages.get("BuildSequences")
    return {
        "dump_parts": fetched["parts"],
        "language": fetched["site"]["language"],
        "pages": stages["ExtractPages"].manifest().rows["pages"],
        "links_by_status": vocab.manifest().facts["links_by_status"],
        "links_in_vocab": vocab.manifest().facts["links_in_vocab"],
        "entities": corpus_view.entity_figures(corpus_view.ranked_entities(vocab.folder)),
        "names": mentions.manifest().rows["names"],
        "min_occurrences": corpus_view.MIN_OCCURRENCES,
        "extremes": corpus_view.name_extremes(mentions.folder),
        "sequences": corpus_view.sequence_rows(sequences.folder) if sequences else [],
    }


def corpus_browser(stages: Mapping[str, Stage]) -> dict[str, Any]:
    """What the page alone shows of the corpus: sample pages, and names to search."""
    from workflows.report.sample_pages import sample_pages

    extracted, titles, vocab, mentions = (
        stages[name].folder
        for name in ("ExtractPages", "ResolveRedirects", "BuildEntityVocab", "BuildMentionTable")
    )
    return {
        "pages": sample_pages(extracted, titles, vocab),
        "search": corpus_view.searched_entities(corpus_view.ranked_entities(vocab), mentions),
    }


def render_tables(content: Mapping[str, Any], compared: Compared) -> str:
    """The tables as Markdown; what comes from outside is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = _markdown_cell
    return environment.get_template("tables.md").render({**content, "compared": compared})


def _markdown_cell(value: Any) -> str:
    text = str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())
