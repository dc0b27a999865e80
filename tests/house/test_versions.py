"""A stage's VERSION rises with its code, since finished folders are recognised by it.

When this fails after a change that writes other bytes, raise the stage's VERSION. In both cases, also when the bytes
stay the same, accept the new code with `python -m tests.house.test_versions`.
"""

import ast
import hashlib
import json
from functools import cache
from pathlib import Path

import pytest

from tests.house.test_imports import PACKAGES, imports
from tests.support import DATA, ROOT

ACCEPTED = DATA / "stage_versions.json"
# Where each stage's work is done. What these modules import is watched with them, except what `workflows` imports.
ROOTS = {
    "FetchDump": ["workflows.stages.pages", "pipeline.dump.fetch"],
    "ReadTemplates": ["workflows.stages.pages", "pipeline.jobs.beam", "pipeline.jobs.read_templates"],
    "ExtractPages": ["workflows.stages.pages", "pipeline.jobs.beam", "pipeline.jobs.extract_pages"],
    "FetchQids": ["workflows.stages.pages", "pipeline.dump.fetch_qids"],
    "ResolveRedirects": ["workflows.stages.tables", "pipeline.jobs.tables.redirects"],
    "ResolveLinks": ["workflows.stages.tables", "pipeline.jobs.tables.links"],
    "BuildEntityVocab": ["workflows.stages.tables", "pipeline.jobs.tables.entity_vocab"],
    "BuildMentionTable": ["workflows.stages.tables", "pipeline.jobs.tables.mention_table"],
    "BuildContexts": ["workflows.stages.tables", "pipeline.jobs.tables.contexts"],
    "TrainTokenizer": ["workflows.stages.sequences", "pipeline.sequences.tokenizer_training"],
    "LinkDocuments": [
        "workflows.stages.linking.documents",
        "tasks.linking.corpora.linking",
        "tasks.linking.corpora.documents",
        "pipeline.jobs.beam",
        "pipeline.schemas",
        "tasks.linking.linker",
        "tasks.serving.predict",
        "tasks.linking.recognition",
    ],
    "BuildDocuments": [
        "workflows.stages.linking.documents",
        "tasks.linking.corpora.pages",
        "pipeline.lookup.targets",
        "pipeline.sequences.shards",
        "tasks.linking.documents.document",
    ],
    "BuildLinkedSentences": [
        "workflows.stages.linking.sentences",
        "tasks.linking.corpora.linked_sentences",
        "tasks.linking.corpora.pages",
        "pipeline.sequences.sentences",
        "pipeline.sequences.shards",
        "tasks.ner.words",
    ],
    "BuildSequences": ["workflows.stages.sequences", "pipeline.jobs.beam", "pipeline.jobs.build_sequences"],
    "Pretrain": ["workflows.stages.pretraining", "model.pretraining.run", "pipeline.sequences.commonest"],
    "PretrainRoberta": ["workflows.stages.pretraining", "model.pretraining.run"],
    "EvaluateLinking": [
        "workflows.stages.linking.evaluation",
        "tasks.linking.corpora.evaluation",
        "tasks.linking.model.answers",
        "tasks.linking.linker",
        "tasks.linking.scores",
        "tasks.linking.calibration.calibration",
        "tasks.serving.predict",
    ],
    "ExportHuggingFace": ["workflows.stages.pretraining", "model.hf.export"],
    "FineTune": [
        "workflows.stages.fine_tuning",
        "workflows.stages.task_stage",
        "workflows.stages.linking.training",
        "tasks.finetuning.finetune",
        "tasks.linker_training.training",
    ],
    "Tune": ["workflows.stages.tuning", "workflows.stages.task_stage"],
    "TunedFineTune": [
        "workflows.stages.tuning",
        "workflows.stages.fine_tuning",
        "workflows.stages.task_stage",
    ],
    "FineTuneGrid": ["workflows.stages.experiments"],
    "Report": [
        "workflows.stages.report",
        "workflows.report.paper.comparison",
        "workflows.report.paper.caveats",
        "workflows.report.paper.experiments",
        "workflows.report.paper.settings",
        "workflows.report.latex",
        "workflows.report.rendering",
        "workflows.report.figures",
        "workflows.report.corpus",
        "workflows.report.sample_pages",
        "workflows.report.training_curves",
        "workflows.report.linking",
    ],
}
# Files that are no code, by the module or the stage that reads them.
DATA_FILES = {
    "model.hf.card": [ROOT / "model/hf/card.toml"],
    "model.luke.config": [ROOT / "model/luke/presets.toml"],
    "model.pretraining.recipes": [ROOT / "model/pretraining/recipes.toml"],
    "tasks.task": [ROOT / "tasks/presets.toml"],
    "pipeline.mediawiki.languages": sorted((ROOT / "pipeline/mediawiki/data").iterdir()),
    "pipeline.sequences.boundaries": sorted((ROOT / "pipeline/sequences/data").iterdir()),
    "workflows.stages.report": sorted((ROOT / "workflows/report/templates").iterdir()),
}


def module_path(name: str) -> Path | None:
    path = ROOT / name.replace(".", "/")
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


def sources(roots: list[str]) -> list[Path]:
    """The files of the modules and of all that they import, of ours, and the data files that they read."""
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        path = module_path(name)
        if path is None:  # a name inside a module
            name = name.rpartition(".")[0]
            path = module_path(name)
        if path is None or name in found:
            continue
        found[name] = path
        if not name.startswith("workflows."):
            waiting += [each for each in imports(path) if each.split(".")[0] in PACKAGES]
    data = [path for name in sorted(found) for path in DATA_FILES.get(name, ())]
    return [path for _, path in sorted(found.items())] + data


@cache
def code_digest(path: Path) -> str:
    """Digest of a module's code without comments, docstrings and layout; of another file's bytes."""
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


@cache
def current() -> dict[str, dict[str, object]]:
    import workflows

    stages = {}
    for stage, roots in ROOTS.items():
        code = hashlib.sha256("".join(map(code_digest, sources(roots))).encode()).hexdigest()
        stages[stage] = {"version": getattr(workflows, stage).VERSION, "code": code}
    return stages


def test_imports_are_followed() -> None:
    assert all(module_path(root) for roots in ROOTS.values() for root in roots)
    extraction = {path.name for path in sources(ROOTS["ExtractPages"])}
    assert {"cut.py", "magic_words.toml", "parquet.py", "schemas.py"} <= extraction
    assert "mention_table.py" not in extraction
    names = {str(path.relative_to(ROOT)) for path in sources(ROOTS["FineTune"])}
    assert {
        "tasks/ner/task.py",
        "model/luke/encoder.py",
        "model/luke/config.py",
        "pipeline/sequences/tokenizer.py",
    } <= names
    assert not {"pipeline/dump/pages.py", "workflows/stages/report.py"} & names


def test_every_stage_is_watched() -> None:
    import workflows

    assert set(ROOTS) | {"Plan", "RunAll", "RunExperiments"} == set(workflows.__all__)


@pytest.mark.parametrize("stage", ROOTS)
def test_version_rises_with_the_code(stage: str) -> None:
    accepted = json.loads(ACCEPTED.read_text())
    assert current()[stage] == accepted[stage], (
        f"the code of {stage} changed: raise VERSION of workflows.{stage} if it now writes other bytes, "
        "then run `python -m tests.house.test_versions` to accept it"
    )


if __name__ == "__main__":
    ACCEPTED.write_text(json.dumps(current(), indent=1) + "\n")
