"""A stage's VERSION rises with its code, since finished folders are recognised by it.

When this fails after a change that writes other bytes, raise the stage's VERSION. In both cases, also when the bytes
stay the same, accept the new code with `python -m tests.house.test_versions`.
"""

import ast
import hashlib
import json
from pathlib import Path

import pytest

from tests.house.test_imports import PACKAGES, imports
from tests.support import DATA, ROOT

ACCEPTED = DATA / "stage_versions.json"
# Where each stage's work is done. What these modules import is watched with them, except where it is the workshop of
# several stages.
ROOTS = {
    "FetchDump": ["workflows.stages.dump", "pipeline.dump.pages", "pipeline.dump.download"],
    "ExtractPages": [
        "workflows.stages.dump",
        "pipeline.jobs.beam",
        "pipeline.dump.pages",
        "pipeline.wikitext.extract",
        "pipeline.mediawiki.titles",
    ],
    "ResolveRedirects": [
        "workflows.stages.tables",
        "pipeline.jobs.spark",
        "pipeline.jobs.mention_table",
        "pipeline.storage.files",
    ],
    "BuildEntityVocab": [
        "workflows.stages.tables",
        "pipeline.jobs.spark",
        "pipeline.jobs.mention_table",
        "pipeline.lookup.entities",
    ],
    "BuildMentionTable": [
        "workflows.stages.tables",
        "pipeline.jobs.spark",
        "pipeline.jobs.mention_table",
        "pipeline.lookup.mentions",
    ],
    "TrainTokenizer": [
        "workflows.stages.sequences",
        "pipeline.sequences.tokenizer",
        "pipeline.storage.files",
    ],
    "BuildSequences": [
        "workflows.stages.sequences",
        "pipeline.jobs.beam",
        "pipeline.lookup.entities",
        "pipeline.sequences.packing",
        "pipeline.sequences.shards",
        "pipeline.sequences.tokenizer",
    ],
    "Pretrain": ["workflows.stages.pretraining", "model.pretrain", "pipeline.sequences.commonest"],
    "PretrainRoberta": ["workflows.stages.pretraining", "model.pretrain"],
    "ExportHuggingFace": ["workflows.stages.pretraining", "model.exchange.export"],
    "FineTune": ["workflows.stages.fine_tuning", "tasks.finetuning.finetune"],
    "Tune": ["workflows.stages.tuning"],
    "FineTuneGrid": ["workflows.stages.experiments"],
    "Report": [
        "workflows.stages.report",
        "workflows.report.comparison",
        "workflows.report.caveats",
        "workflows.report.paper_settings",
        "workflows.report.latex",
        "workflows.report.html",
        "workflows.report.figures",
        "workflows.report.corpus",
        "workflows.report.sample_pages",
        "workflows.report.training_curves",
    ],
}
WORKSHOPS = ("workflows.", "pipeline.jobs.beam", "pipeline.jobs.mention_table")
TEMPLATES = {"Report": sorted((ROOT / "workflows/report/templates").iterdir())}


def module_path(name: str) -> Path | None:
    path = ROOT / (name.replace(".", "/") + ".py")
    return path if path.is_file() else None


def sources(roots: list[str]) -> list[Path]:
    """The files of the modules and of all that they import, of ours."""
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
        if not name.startswith(WORKSHOPS):
            waiting += [each for each in imports(path) if each.split(".")[0] in PACKAGES]
    return [path for _, path in sorted(found.items())]


def code_digest(path: Path) -> str:
    """Digest of a module's code without comments, docstrings and layout."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def current() -> dict[str, dict[str, object]]:
    import workflows

    stages = {}
    for stage, roots in ROOTS.items():
        digests = [code_digest(path) for path in sources(roots)]
        digests += [hashlib.sha256(path.read_bytes()).hexdigest() for path in TEMPLATES.get(stage, [])]
        code = hashlib.sha256("".join(digests).encode()).hexdigest()
        stages[stage] = {"version": getattr(workflows, stage).VERSION, "code": code}
    return stages


def test_imports_are_followed() -> None:
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

    assert set(ROOTS) | {"RunAll", "RunExperiments"} == set(workflows.__all__)


@pytest.mark.parametrize("stage", ROOTS)
def test_version_rises_with_the_code(stage: str) -> None:
    accepted = json.loads(ACCEPTED.read_text())
    assert current()[stage] == accepted[stage], (
        f"the code of {stage} changed: raise VERSION of workflows.{stage} if it now writes other bytes, "
        "then run `python -m tests.house.test_versions` to accept it"
    )


if __name__ == "__main__":
    ACCEPTED.write_text(json.dumps(current(), indent=1) + "\n")
