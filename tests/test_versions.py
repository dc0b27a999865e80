"""A stage's VERSION rises with its code, since finished folders are recognised by it.

When this fails after a change that writes other bytes, raise the stage's VERSION. In both cases, also when the bytes
stay the same, accept the new code with `python tests/test_versions.py`.
"""

import ast
import hashlib
import json
from pathlib import Path

import pytest
from conftest import ROOT
from test_imports import PACKAGES, imports

ACCEPTED = Path(__file__).with_name("data") / "stage_versions.json"
# Where each stage's work is done. What these modules import is watched with them, except where it is the workshop of
# several stages.
ROOTS = {
    "FetchDump": ["workflows.extraction", "pipeline.dump", "pipeline.download"],
    "ExtractPages": [
        "workflows.extraction",
        "pipeline.jobs_beam",
        "pipeline.dump",
        "pipeline.wikitext",
        "pipeline.titles",
    ],
    "ResolveRedirects": ["workflows.tables", "pipeline.spark", "pipeline.jobs_spark", "pipeline.storage"],
    "BuildEntityVocab": ["workflows.tables", "pipeline.spark", "pipeline.jobs_spark", "pipeline.entities"],
    "BuildMentionTable": ["workflows.tables", "pipeline.spark", "pipeline.jobs_spark", "pipeline.mentions"],
    "TrainTokenizer": ["workflows.sequences", "pipeline.tokens", "pipeline.storage"],
    "BuildSequences": [
        "workflows.sequences",
        "pipeline.jobs_beam",
        "pipeline.entities",
        "pipeline.sequences",
        "pipeline.shards",
        "pipeline.tokens",
    ],
    "Pretrain": ["workflows.training", "model.pretrain", "pipeline.commonest"],
    "PretrainRoberta": ["workflows.training", "model.pretrain"],
    "ExportHuggingFace": ["workflows.training", "model.hf_export"],
    "FineTune": ["workflows.fine_tuning", "tasks.finetune"],
    "Tune": ["workflows.tuning"],
    "FineTuneGrid": ["workflows.experiments"],
    "Report": [
        "workflows.report",
        "workflows.compared",
        "workflows.comparable",
        "workflows.hyperparameters",
        "workflows.latex",
        "workflows.page",
        "workflows.plots",
        "workflows.corpus_view",
        "workflows.sample_pages",
        "workflows.training_view",
    ],
}
WORKSHOPS = ("workflows.", "pipeline.jobs_beam", "pipeline.jobs_spark")
TEMPLATES = {"Report": sorted((ROOT / "workflows/templates").iterdir())}


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
    assert {"tasks/ner.py", "model/encoder.py", "model/config.py", "pipeline/tokens.py"} <= names
    assert not {"pipeline/dump.py", "workflows/report.py"} & names


def test_every_stage_is_watched() -> None:
    import workflows

    assert set(ROOTS) | {"RunAll", "RunExperiments"} == set(workflows.__all__)


@pytest.mark.parametrize("stage", ROOTS)
def test_version_rises_with_the_code(stage: str) -> None:
    accepted = json.loads(ACCEPTED.read_text())
    assert current()[stage] == accepted[stage], (
        f"the code of {stage} changed: raise VERSION of workflows.{stage} if it now writes other bytes, "
        "then run `python tests/test_versions.py` to accept it"
    )


if __name__ == "__main__":
    ACCEPTED.write_text(json.dumps(current(), indent=1) + "\n")
