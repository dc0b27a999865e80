"""A stage's VERSION rises with its code, since finished folders are recognised by it.

When this fails after a change that writes other bytes, raise the stage's VERSION. In both cases, also when the bytes
stay the same, accept the new code with `python tests/test_versions.py`.
"""

import ast
import hashlib
import json
import sys
from pathlib import Path

import pytest
from conftest import ROOT

ACCEPTED = Path(__file__).with_name("data") / "stage_versions.json"
TEXT = ["titles", "languages", "markup", "inline", "quotes", "wikitext"]
TRAINING = [
    "attention",
    "batch",
    "checkpoint",
    "config",
    "embeddings",
    "encoder",
    "heads",
    "hf",
    "initial",
    "loader",
]
TRAINING += ["recipes", "resume", "shards", "train"]
SOURCES = {
    "FetchDump": ["pipeline/dump", "pipeline/download", "pipeline/bzip2"],
    "ExtractPages": [
        *(f"pipeline/{name}" for name in TEXT),
        "pipeline/dump",
        "pipeline/bzip2",
        "pipeline/jobs_beam",
    ],
    "ResolveRedirects": ["pipeline/jobs_spark"],
    "BuildEntityVocab": ["pipeline/jobs_spark", "pipeline/entities"],
    "BuildMentionTable": ["pipeline/jobs_spark", "pipeline/mentions"],
    "TrainTokenizer": ["pipeline/tokens"],
    "BuildSequences": [
        *(
            f"pipeline/{name}"
            for name in ("sentences", "tokens", "sequences", "shards", "entities", "jobs_beam")
        )
    ],
    "Pretrain": ["model/pretrain", *(f"model/{name}" for name in TRAINING)],
    "PretrainRoberta": ["model/pretrain", *(f"model/{name}" for name in TRAINING)],
    "ExportHuggingFace": ["model/hf", "model/config", "model/checkpoint"],
    "FineTune": [
        *(
            f"tasks/{name}"
            for name in ("columns", "context", "finetune", "metrics", "ner", "spans", "task", "variants")
        ),
        *(f"model/{name}" for name in ("attention", "batch", "embeddings", "encoder", "train")),
    ],
    "Report": ["workflows/report"],
}


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

    return {
        stage: {
            "version": getattr(workflows, stage).VERSION,
            "code": hashlib.sha256(
                "".join(code_digest(ROOT / f"{source}.py") for source in sources).encode()
            ).hexdigest(),
        }
        for stage, sources in SOURCES.items()
    }


def test_every_stage_is_watched() -> None:
    import workflows

    assert set(SOURCES) | {"RunAll"} == set(workflows.__all__)


@pytest.mark.parametrize("stage", SOURCES)
def test_version_rises_with_the_code(stage: str) -> None:
    accepted = json.loads(ACCEPTED.read_text())
    assert current()[stage] == accepted[stage], (
        f"the code of {stage} changed: raise VERSION of workflows.{stage} if it now writes other bytes, "
        "then run `python tests/test_versions.py` to accept it"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    ACCEPTED.write_text(json.dumps(current(), indent=1) + "\n")
