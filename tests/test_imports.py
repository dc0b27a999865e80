"""Who may import whom, held against the syntax tree."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGES = ("pipeline", "model", "tasks", "workflows")
ALLOWED = {
    "pipeline": {"pipeline"},
    "model": {"model"},
    "tasks": {
        "tasks",
        "model",
        "pipeline.entities",
        "pipeline.mentions",
        "pipeline.tokens",
        "pipeline.vocabularies",
        "pipeline.storage",
    },
    "workflows": {"workflows", "tasks", "model", "pipeline"},
}
# The layers of the exchange, lowest first: files and the key table know no model, and only the command line starts
# what stands on top.
EXCHANGE = {
    "files": set(),
    "original": {"config", "files"},
    "hf": {"config", "card", "hf_check", "hf_export"},
    "card": {"config", "files"},
    "checkpoint": {"attention", "config", "encoder", "files", "hf", "original"},
    "hf_export": {"attention", "card", "checkpoint", "config", "files", "heads", "hf", "original"},
    "fine_tuned": {"checkpoint", "config", "encoder", "files", "hf", "hf_export", "original"},
    "hf_check": {"batch", "checkpoint", "config", "heads", "hf", "original"},
}
ENGINES = {
    "apache_beam": {"pipeline/jobs_beam.py"},
    "pyspark": {"pipeline/spark.py", "pipeline/jobs_spark.py"},
    "luigi": {f"workflows/{path.name}" for path in (ROOT / "workflows").glob("*.py")},
}
# What a machine that only trains has; all else is imported inside the functions that need it.
TRAINING_MACHINE = {"torch", "transformers", "safetensors", "pyarrow", "numpy", "tqdm", "tokenizers"}

SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).glob("*.py"))


def imports(path: Path, *, top_level: bool = False) -> Iterator[str]:
    """Full names of the modules that a file imports; `from x import y` counts as x.y too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    deferred = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if top_level and node in deferred:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows(path: Path) -> None:
    allowed = ALLOWED[path.parent.name]
    ours = [name for name in imports(path) if name.split(".")[0] in PACKAGES]
    wrong = [name for name in ours if not any(name == ok or name.startswith(ok + ".") for ok in allowed)]
    assert not wrong, f"{path.parent.name} may import {sorted(allowed)} only"


@pytest.mark.parametrize("name", EXCHANGE)
def test_exchange_has_layers(name: str) -> None:
    path = ROOT / "model" / f"{name}.py"
    modules = {other.stem for other in path.parent.glob("*.py")}

    def of_model(names: Iterator[str]) -> set[str]:
        parts = (name.split(".") for name in names)
        return {part[1] for part in parts if part[0] == "model" and part[1] in modules}

    assert of_model(imports(path)) == EXCHANGE[name]
    # What `python -m model.hf` starts is imported when it is asked for: it stands on hf itself.
    at_once = {"config"} if name == "hf" else EXCHANGE[name]
    assert of_model(imports(path, top_level=True)) == at_once


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_stay_in_their_files(engine: str) -> None:
    users = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        if any(name.split(".")[0] == engine for name in imports(path))
    }
    assert users <= ENGINES[engine]
    assert users


@pytest.mark.parametrize("package", ["model", "tasks"])
def test_training_needs_few_packages(package: str) -> None:
    import sys

    for path in (ROOT / package).glob("*.py"):
        roots = {name.split(".")[0] for name in imports(path, top_level=True)}
        foreign = roots - set(sys.stdlib_module_names) - set(PACKAGES)
        assert foreign <= TRAINING_MACHINE, path.name


def test_luigi_starts_at_once() -> None:
    """Importing `workflows` loads none of the heavy libraries."""
    import subprocess
    import sys

    heavy = ["torch", "transformers", "pyspark", "apache_beam", "plotly", "pandas"]
    code = f"import sys, workflows; print([name for name in {heavy!r} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"
