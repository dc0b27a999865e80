"""Who may import whom, held against the syntax tree: `docs/explanation/architecture` says why."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support import ROOT

PACKAGES = ("pipeline", "model", "tasks", "workflows")
MOST_MODULES = 9  # in a folder
# For each folder the folders and files that it may import; its own are always allowed. Imports inside functions count.
ARROWS = ROOT / "docs" / "reference" / "arrows.toml"
ALLOWED = {room: set(names) for room, names in tomllib.loads(ARROWS.read_text(encoding="utf-8")).items()}
ENGINES = {"apache_beam": "pipeline/jobs/", "pyspark": "pipeline/jobs/", "luigi": "workflows/"}
# What a machine that only trains has; all else is imported inside the functions that need it. jinja2 comes with
# torch, the three before it with transformers.
TRAINING_MACHINE = {"torch", "transformers", "safetensors", "pyarrow", "numpy", "tqdm", "tokenizers", "regex", "jinja2"}

# The service's models of requests and its connections, which it imports where FastAPI and uvicorn are.
SERVED = {ROOT / "tasks/linking" / name for name in ("service/schema.py", "service/connections.py", "formats/nif.py")}

SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


MODULES = {module_name(path): path for path in SOURCES}


def imports(path: Path, *, top_level: bool = False) -> Iterator[str]:
    """Full names of what a file imports, x.y for `from x import y`; those for type checks and in functions included.

    With `top_level` they are those that are imported as soon as the file is.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_check = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if top_level and (is_function or is_check):
            left_out.update(ast.walk(node))
    for node in ast.walk(tree):
        if node in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def our_modules(path: Path) -> frozenset[str]:
    """The modules of ours that a file imports: x.y is x where y is a name inside of it."""
    names = [name for name in imports(path) if name.split(".")[0] in PACKAGES]
    found = {name if name in MODULES else name.rpartition(".")[0] for name in names}
    return frozenset(found - {module_name(path)})


def room_of(module: str) -> str:
    """The longest entry of ALLOWED that the module is in."""
    return max((room for room in ALLOWED if is_in(module, room)), key=len)


def is_in(module: str, room: str) -> bool:
    return f"{module}.".startswith(f"{room}.")


def test_arrows() -> None:
    wrong = []
    for module, path in MODULES.items():
        allowed = [*ALLOWED[room_of(module)], room_of(module)]
        for name in our_modules(path):
            if not any(is_in(name, room) for room in allowed):
                wrong.append(f"{module} imports {name}")
    assert wrong == []


def test_every_arrow_has_an_import() -> None:
    for room, allowed in ALLOWED.items():
        used = {name for module, path in MODULES.items() if room_of(module) == room for name in our_modules(path)}
        unused = [other for other in allowed if not any(is_in(name, other) for name in used)]
        assert unused == [], room


def test_no_folder_may_import_all_of_its_room() -> None:
    for room, allowed in ALLOWED.items():
        for other in allowed:
            assert not is_in(room, other) or room == other, f"{room} may import {other}, in which it is"


def test_no_circle() -> None:
    """No file imports itself by way of others; imports inside functions and for type checks included."""
    assert circle({name: our_modules(path) for name, path in MODULES.items()}) == []


def test_no_circle_of_folders() -> None:
    """In no folder two things import each other, each a file or a folder with all that is in it."""
    for folder in {name for name, path in MODULES.items() if path.stem == "__init__"} | {""}:
        graph: dict[str, set[str]] = {}
        for module, path in MODULES.items():
            if (own := child_of(folder, module)) is not None:
                others = {child_of(folder, name) for name in our_modules(path)}
                graph.setdefault(own, set()).update(filter(None, others - {own}))
        assert circle(graph) == [], folder


def child_of(folder: str, module: str) -> str | None:
    """The file or folder of a folder that a module is, or is in; None where it is neither."""
    if folder and not module.startswith(f"{folder}."):
        return None
    return module[len(folder) + 1 if folder else 0 :].split(".")[0]


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """A circle of a graph, if it has any."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


FOLDERS = sorted(
    {path.parent for path in SOURCES} | {path.parent for path in (ROOT / "benchmarks").rglob("__init__.py")}
)


def names_of(folder: Path) -> Counter[str]:
    """The names of a folder's map: in a line, before two blanks or more, one name or several with commas."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    lines = re.findall(r"(?m)^([\w.]+(?:, [\w.]+)*)  +\S", text)
    return Counter(name for line in lines for name in line.split(", "))


def test_folders_have_a_map_of_all_that_is_in_them() -> None:
    """Each module, folder and other file once, and nothing else."""
    hidden = ("__init__", "__main__", "__pycache__")
    for folder in FOLDERS:
        found = {path.stem if path.suffix == ".py" else path.name for path in folder.iterdir()} - {*hidden}
        assert names_of(folder) == Counter(found), folder


def test_folders_are_small() -> None:
    for folder in {path.parent for path in SOURCES}:
        modules = [path for path in folder.glob("*.py") if path.stem not in ("__init__", "__main__")]
        assert len(modules) <= MOST_MODULES, folder


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_stay_in_their_folders(engine: str) -> None:
    users = {
        str(path.relative_to(ROOT)) for path in SOURCES if any(name.split(".")[0] == engine for name in imports(path))
    }
    assert users
    assert all(user.startswith(ENGINES[engine]) for user in users)


@pytest.mark.parametrize("package", ["model", "tasks"])
def test_training_needs_few_packages(package: str) -> None:
    for path in {*(ROOT / package).rglob("*.py")} - SERVED:
        roots = {name.split(".")[0] for name in imports(path, top_level=True)}
        foreign = roots - set(sys.stdlib_module_names) - set(PACKAGES)
        # Triton comes with torch for CUDA; nobody imports its kernels where it is not.
        assert foreign - ({"triton"} if path.stem == "triton_kernels" else set()) <= TRAINING_MACHINE, path


@pytest.mark.parametrize("package", ["model", "tasks"])
def test_tests_of_training_need_few_packages(package: str) -> None:
    """`make test-model` runs them on a machine that only trains. A module that skips itself there may import more."""
    wanted = TRAINING_MACHINE | {"huggingface_hub", "pytest", "tests", "pipeline", "model", "tasks"}
    for path in (ROOT / "tests" / package).rglob("*.py"):
        if "\npytest.importorskip(" not in path.read_text(encoding="utf-8"):
            used = {name.split(".")[0] for name in imports_with_support(path)}
            assert used - set(sys.stdlib_module_names) <= wanted, path


def imports_with_support(path: Path) -> Iterator[str]:
    """The imports of a test module, and of those of tests/support that it has; `properties` does without hypothesis."""
    for name in imports(path, top_level=True):
        yield name
        parts = name.split(".")
        if parts[:3] == ["tests", "support", "properties"]:
            continue
        for module in (ROOT.joinpath(*parts[:end]).with_suffix(".py") for end in (len(parts), len(parts) - 1)):
            if name.startswith("tests.support.") and module.is_file():
                yield from imports_with_support(module)


def loaded(module: str, heavy: list[str]) -> str:
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()


def test_luigi_starts_at_once() -> None:
    assert (
        loaded("workflows", ["torch", "transformers", "tokenizers", "pyspark", "apache_beam", "vl_convert", "pandas"])
        == "[]"
    )


def test_the_model_needs_torch_alone() -> None:
    assert loaded("model.luke.heads", ["pyarrow", "transformers", "tokenizers", "safetensors"]) == "[]"
    assert loaded("model.luke", ["pyarrow", "transformers", "tokenizers", "safetensors"]) == "[]"


def test_patterns_match_alike_in_every_python() -> None:
    """Before Python 3.11.5 `re` is wrong about possessive groups with alternatives; an atomic group says the same."""
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")
    signs = "%&'()*+,-./"  # of a list of them
    found = [path for path in SOURCES if possessive.search(path.read_text().replace(signs, ""))]
    assert not found, "wanted (?>(?:...)*) for (?:...)*+"
