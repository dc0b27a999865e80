"""The report: what went in, what each stage kept and dropped, how training went, what came out."""

import heapq
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import storage
from tasks.variants import VARIANTS
from workflows import parameters
from workflows.experiments import EXPERIMENTS, FineTuneGrid, GridSettings
from workflows.extraction import FetchDump
from workflows.sequences import STATISTICS, BuildSequences
from workflows.stage import Result, Stage, logger
from workflows.tables import BuildEntityVocab, BuildMentionTable
from workflows.training import ExportHuggingFace, Pretrain, PretrainRoberta

TEMPLATES = Path(__file__).parent / "templates"
TOP_ENTITIES = 25
CURVES = {
    "loss": ("masked_word_loss", "masked_entity_loss"),
    "accuracy": ("masked_word_accuracy", "masked_entity_accuracy"),
}


class Report(GridSettings, Stage):
    """One page (`index.html`), the same as Markdown (`tables.md`) and as data (`results.json`)."""

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

    def work(self) -> Result:
        content = self.content()
        page, markdown = render(content)
        texts = {
            "index.html": page,
            "tables.md": markdown,
            "results.json": json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n",
        }
        for name, text in texts.items():
            storage.write_bytes(storage.join(self.folder, name), text.encode("utf-8", "replace"))
        return Result(tuple(storage.describe(self.folder, name) for name in sorted(texts)))

    def content(self) -> dict[str, Any]:
        """All that the report shows, as data."""
        vocab = self.clone(BuildEntityVocab)
        fetched = self.clone(FetchDump).manifest()
        stages = [stage for stage in self.walk() if stage is not self]
        return {
            "setting": {
                "dump": [part["name"] for part in fetched.facts["parts"]],
                "language": fetched.facts["site"]["language"],
                "preset": self.preset,
                "profile": self.profile,
                "base_model": os.path.basename(os.path.normpath(self.base_model)),
                "seed": self.seed,
            },
            "dump_parts": fetched.facts["parts"],
            "stages": [_stage_row(stage) for stage in stages],
            "links_by_status": vocab.manifest().facts["links_by_status"],
            "links_in_vocab": vocab.manifest().facts["links_in_vocab"],
            "top_entities": top_entities(vocab.folder),
            "sequences": sequence_rows(self.clone(BuildSequences).folder),
            "training": {
                name: _training_log(self.requires()[name]) for name in ("Pretrain", "PretrainRoberta")
            },
            "held_out": {
                name: held_out_rows(self.requires()[name].folder) for name in ("Pretrain", "PretrainRoberta")
            },
            "results": [
                {"task": cell["task"], "variant": cell["variant"], **cell["metrics"]}
                for cell in json.loads(storage.read_bytes(storage.join(self.grid().folder, EXPERIMENTS)))[
                    "cells"
                ]
                if cell["state"] == "done"
            ],
        }


class RunExperiments(GridSettings, Stage):
    """The grid of fine-tunings, and the report that lays it beside the paper's tables."""

    FOLDER = "report"

    variants = parameters.ListOf(
        parameters.OneOf(*VARIANTS, default="luke", description=""),
        default=",".join(VARIANTS),
        description="rows of tasks/variants.py",
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
        path = storage.join(self.report().folder, "index.html")
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
        "stage": type(stage).__name__,
        "folder": os.path.basename(stage.folder),
        "rows": dict(manifest.rows),
        "drops": dict(sorted(manifest.drops.items(), key=lambda drop: (-drop[1], drop[0]))),
        "files": len(manifest.files),
        "bytes": sum(entry.bytes for entry in manifest.files),
        "parameters": dict(manifest.parameters),
        "inputs": dict(manifest.inputs),
    }


def top_entities(folder: str) -> list[dict[str, Any]]:
    """The most linked entities of a vocabulary's folder."""
    from pipeline.entities import SPECIAL_ENTITIES

    rows = storage.read_rows(storage.join(folder, "entity_vocab.parquet"), ["title", "link_count"])
    entities = itertools.islice(rows, len(SPECIAL_ENTITIES), None)
    return heapq.nlargest(TOP_ENTITIES, entities, key=lambda row: row["link_count"])


def sequence_rows(folder: str) -> list[dict[str, Any]]:
    """What is in the sequences that pretraining sees, and in those that are held out."""
    from pipeline.shards import HELD_OUT, SEEN
    from pipeline.statistics import SIZES, summary

    statistics = json.loads(storage.read_bytes(storage.join(folder, STATISTICS)))
    rows = []
    for part in (SEEN, HELD_OUT):
        sizes = {name: summary(statistics[part].pop(name)) for name in SIZES}
        rows.append({"part": part.replace("_", " "), **statistics[part], "sizes": sizes})
    return rows


def _training_log(stage: Stage) -> list[dict[str, Any]]:
    lines = storage.read_bytes(storage.join(stage.folder, "metrics.jsonl")).decode().splitlines()
    return [json.loads(line) for line in lines]


def held_out_rows(folder: str) -> dict[str, dict[str, float]]:
    """The last held-out figures of a pretraining by group (masked words, masked entities and parts of them)."""
    path = storage.join(folder, "evaluation.jsonl")
    if storage.file_size(path) is None:
        return {}
    last = json.loads(storage.read_bytes(path).decode().splitlines()[-1])
    groups = [name.removesuffix("_count") for name in last if name.endswith("_count")]
    rows: dict[str, dict[str, float]] = {group: {} for group in groups}
    for name, value in last.items():
        of_name = [group for group in groups if name.startswith(f"{group}_")]
        if of_name:
            group = max(of_name, key=len)
            rows[group][name.removeprefix(f"{group}_")] = value
    return rows


def render(content: Mapping[str, Any]) -> tuple[str, str]:
    """The page and the Markdown tables; everything that comes from the dump is escaped."""
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    page = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True)
    text.filters["cell"] = _markdown_cell
    plots = training_plots(content["training"])
    return (
        page.get_template("report.html").render(**content, plots=plots),
        text.get_template("tables.md").render(**content),
    )


def _markdown_cell(value: Any) -> str:
    text = str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|":
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def training_plots(logs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Loss and accuracy of both pretraining runs by step, as HTML that works offline."""
    import markupsafe
    import plotly.graph_objects as graphs
    from plotly import io

    parts = []
    for number, (what, names) in enumerate(CURVES.items()):
        figure = graphs.Figure()
        for run, log in logs.items():
            for name in names:
                points = [(row["step"], row[name]) for row in log if row.get(name) is not None]
                if points:
                    steps, values = zip(*points, strict=True)
                    figure.add_scatter(
                        x=steps, y=values, mode="lines", name=f"{run}: {name.replace('_', ' ')}"
                    )
        figure.update_layout(
            title=f"Pretraining {what}",
            xaxis_title="step",
            yaxis_title=what,
            template="plotly_white",
            height=380,
        )
        parts.append(
            io.to_html(
                figure,
                full_html=False,
                include_plotlyjs=number == 0,
                div_id=f"curve-{what}",
                config={"responsive": True},
            )
        )
    return markupsafe.Markup("\n".join(parts))  # made of numbers and our own names
