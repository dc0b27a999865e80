"""Documents are held against the code: commands run, reasons have meanings, links end, computed figures hold.

A comment above a block says what a command needs that a test has not: `<!-- needs: network, time -->`. All other blocks
are run, page by page, in a copy of a small work directory.
"""

import ast
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.mediawiki.wiki_rules import read_rules
from tests.support import ROOT
from tests.support.commands import programs
from tests.support.stages import MINILM, run_in_process
from workflows.base.commandline import read_command, stage_of
from workflows.base.helping import own_parameters
from workflows.luke import COMMANDS as COMMANDS_OF_LUKE
from workflows.run.file import Run, change_run, parse_set
from workflows.run.options import all_options

sys.path.append(str(ROOT / "docs" / "_ext"))
import generated  # docs/_ext, which is no package

DOCS = ROOT / "docs"
MADE = ("docs/reference/stages/", "docs/results/", "docs/reference/commands.md", "docs/reference/calls.md")
MADE += ("docs/reference/run.md", "docs/reference/folders.md")
PAGES = [
    path
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "benchmarks" / "LOG.md",
        *sorted(DOCS.rglob("*.md")),
    ]
    if not path.relative_to(ROOT).as_posix().startswith(MADE)
]
COMMANDS, DATA_FORMATS = ("sh", "python"), ("text", "json", "toml", "ini", "{image}", "{toctree}")
NEEDS = ("network", "GPU", "data", "cluster", "time")
# Programs of the system, or of packages; ours are checked further.
PROGRAMS = [".", "cp", "curl", "docker", "echo", "head", "hf", "ls", "mkdir", "pip", "tensorboard"]
MEANINGS = generated.MEANINGS


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `needs` is None where no comment stands above it."""

    page: Path
    line: int
    language: str
    text: str
    needs: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def read_blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        if lines[number].startswith("```"):
            end = lines.index("```", number + 1)
            comment = re.fullmatch(r"<!-- needs: (.+) -->", lines[number - 1]) if number else None
            needs = tuple(comment[1].split(", ")) if comment else None
            language = (lines[number].removeprefix("```").split() or [""])[0]
            yield Block(page, number + 1, language, "\n".join(lines[number + 1 : end]), needs)
            number = end
        number += 1


BLOCKS = [block for page in PAGES for block in read_blocks(page)]
RUN = [block for block in BLOCKS if block.language in COMMANDS and block.needs is None]


def test_every_block_says_what_it_is_and_every_mark_is_known() -> None:
    for block in BLOCKS:
        assert block.language in (*COMMANDS, *DATA_FORMATS), f"{block}: {block.language!r}"
        assert block.language in COMMANDS or block.needs is None, f"{block}: nothing is run there"
        assert set(block.needs or ()) <= set(NEEDS), f"{block}: {block.needs}; wanted some of {NEEDS}"
    marks = sum(page.read_text(encoding="utf-8").count("\n<!-- needs:") for page in PAGES)
    assert marks == sum(block.needs is not None for block in BLOCKS), "a mark stands above no block"


# Commands, whether they are run or not


def commands(block: Block) -> Iterator[list[str]]:
    """The words of each command of a block, without variables, redirections and comments."""
    lexer = shlex.shlex(block.text.replace("\\\n", " "), posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split = " \t", True
    words: list[str] = []
    for word in [*lexer, "\n"]:
        if set(word) <= set("();|&\n"):
            while words and re.match(r"\w+=", words[0]):
                words.pop(0)
            if words:
                yield words[: next((at for at, each in enumerate(words) if set(each) <= set("<>")), None)]
            words = []
        else:
            words.append(word)


def check_command(words: list[str]) -> None:
    """Raises: AssertionError or ValueError for a command that ours would refuse, or that nobody knows."""
    program, *arguments = words
    if program == "luke" and arguments[0] == "run":
        check_stage(arguments[1:])
    elif program == "luke":
        module, *before = COMMANDS_OF_LUKE[arguments[0]]
        is_workdir = arguments == ["look", "work", "--sequences"]  # which alone is not that module's
        check_module(module.removesuffix(".__main__"), [*before, *arguments[1 : 2 if is_workdir else None]])
    elif program == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{arguments[0]}:", makefile, re.M), arguments
    elif program in ("python", "torchrun"):
        if "-c" not in arguments[:1]:
            at = arguments.index("-m")
            check_module(arguments[at + 1], arguments[at + 2 :])
    else:
        assert program in PROGRAMS, words


def check_stage(arguments: list[str]) -> None:
    command = read_command(arguments)
    command.begin = command.begin if Path(command.begin).is_file() else ""  # readers write their own
    command.is_dry = True
    stage_of(command)


def check_module(module: str, arguments: list[str]) -> None:
    assert module.split(".")[0] in ("pipeline", "model", "tasks", "workflows"), module
    if module == "model.sizes":  # parses nothing
        return
    parser, errors = generated.parser_of(module), io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            parser.parse_args(arguments)
        except SystemExit:
            raise AssertionError(errors.getvalue()) from None


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "sh"], ids=str)
def test_commands_are_ones_that_there_are(block: Block) -> None:
    found = list(commands(block))
    assert found
    for words in found:
        check_command(words)


# Commands that are run


@pytest.fixture(scope="module")
def demo(demo_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work directory with the demo's stages up to the export, where pretraining has a few steps."""
    from workflows import ExportHuggingFace

    folder = tmp_path_factory.mktemp("documentation")
    others = shutil.ignore_patterns("contexts-*", "documents-*", "linked-*", "tokenizer-*")
    shutil.copytree(demo_corpus, folder / "work", ignore=others)
    # As many steps as give the answers that the documentation shows.
    short = {"base_model": MINILM, "steps": 12, "warmup_steps": 1, "checkpoint_every": 6}
    changes = [parse_set(f"pretraining.{name}={value}") for name, value in short.items()]
    run = change_run(str(folder / "work"), changes, str(ROOT / "examples" / "runs" / "demo.toml"))
    run_in_process(ExportHuggingFace(settings=run))
    return folder


def run(block: Block, folder: Path) -> str:
    """Return the output of a block's commands, in a shell or in Python as users have them."""
    path = os.pathsep.join([str(programs()), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    program = ["bash", "-euc"] if block.language == "sh" else ["python", "-c"]
    done = subprocess.run(
        [*program, block.text], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{block}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.smoke] if page.name in ("README.md", "demo.md") else [])
        for page in sorted({block.page for block in RUN})
    ],
    ids=lambda page: page.stem,
)
def test_unmarked_blocks_run(page: Path, demo: Path, tmp_path: Path) -> None:
    shutil.copytree(demo / "work", tmp_path / "work")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "minilm").symlink_to(MINILM)
    for block, following in pairwise([*read_blocks(page), None]):
        if block in RUN:
            printed = run(block, tmp_path)
            if following and is_answer(block, following):
                check_answer(following, printed)


def is_answer(block: Block, following: Block) -> bool:
    """Return whether a block shows the output of the one above it, which links a text."""
    return following.language == "json" and "luke link" in block.text


def check_answer(shown: Block, printed: str) -> None:
    """A block of JSON is what the command above it prints: the probabilities alone are those of longer training."""
    answer, wanted = json.loads(printed), json.loads(shown.text)
    for mention in [*answer["mentions"], *wanted["mentions"]]:
        assert 0 < mention.pop("confidence") <= mention.pop("probability") <= 1, shown
    assert answer == wanted, shown


@pytest.mark.slow
def test_the_readme_shows_what_the_demo_prints(demo: Path) -> None:
    (shown,) = [block for block in read_blocks(ROOT / "README.md") if block.language == "text"]
    manifests = {
        each["stage"]: each for each in map(json.loads, map(Path.read_text, demo.glob("work/*/manifest.json")))
    }
    for line in shown.text.splitlines():
        stage, rows = line.partition(" | ")[0].split(maxsplit=1)
        found = manifests[stage]["rows"]
        assert rows == ", ".join(f"{count:,} {name}" for name, count in sorted(found.items()))


# Drop reasons


def trees(*folders: str) -> Iterator[ast.Module]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"))


def texts(node: ast.AST) -> set[str]:
    """Every text that an expression holds."""
    return {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def function(name: str) -> Iterator[ast.FunctionDef]:
    for tree in trees("pipeline"):
        yield from (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == name)


def returned(name: str) -> set[str]:
    """The texts that the tuples hold which a function returns, but for the empty one."""
    tuples = [
        each.value for found in function(name) for each in ast.walk(found)
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Tuple)
    ]  # fmt: skip
    return {text for each in tuples for part in each.elts for text in reasons_in(part)} - {""}


def reasons_in(part: ast.expr) -> set[str]:
    if isinstance(part, ast.IfExp):
        return reasons_in(part.body) | reasons_in(part.orelse)
    if isinstance(part, ast.Call):  # special.get(key, "other_namespace")
        return texts(part)
    return {part.value} if isinstance(part, ast.Constant) and isinstance(part.value, str) else set()


def source_reasons() -> tuple[set[str], set[str]]:
    """The reasons that stand in the source as they are, and patterns of those that are put together."""
    whole, patterns = set(), set()
    for tree in trees("pipeline", "tasks/linking/corpora", "workflows"):
        nodes = list(ast.walk(tree))
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        parts = {id(part) for node in joined for part in ast.walk(node)}
        whole |= {text for node in nodes if id(node) not in parts for text in reasons_in(node)}
        patterns |= {pattern_of(node) for node in joined}
    return {text for text in whole if re.fullmatch(r"[a-z]+:[a-z_]+", text)}, patterns - {""}


def pattern_of(text: ast.JoinedStr) -> str:
    """A pattern of the reasons that a text with gaps can be; empty where it can be none."""
    parts = [str(part.value) if isinstance(part, ast.Constant) else GAP for part in text.values]
    shape = "".join(parts)
    is_one = re.fullmatch(r"(?!cuda:)([a-z]+|GAP):([a-z_]|GAP)+", shape.replace(GAP, "GAP"))
    return shape if is_one else ""


def possible_reasons() -> set[str]:
    """Every reason that the code can count, those included that it puts together."""
    from pipeline.mediawiki.tags import KINDS

    whole, _ = source_reasons()
    kinds = {*KINDS.values(), "templates", "tables", "comments", "hidden"}
    links = returned("classify") - {"article"} | {"category", "file", "interlanguage", "around_link"}
    found = whole | {f"{kind}:cut" for kind in kinds} | {f"links:{reason}" for reason in links}
    found |= {f"pages:{reason}" for reason in returned("_wikitext")}
    held = ast.literal_eval(assigned("_HOLDS_LINKS"))
    return found | {f"links:in_{kind}" for kind in held}


def assigned(name: str) -> ast.expr:
    for tree in trees("pipeline"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return node.value
    raise AssertionError(f"{name} is assigned nowhere")


GAP = "[^ ]+"
KNOWN = {reason for reasons in MEANINGS["drops"].values() for reason in reasons}


def test_every_reason_that_the_code_can_count_has_a_meaning() -> None:
    assert possible_reasons() - KNOWN == set()
    whole, patterns = source_reasons()
    assert {"links:crosses_sentence", "redirects:shadowed", "markup:unclosed_tag"} <= whole
    for pattern in patterns:
        assert any(re.fullmatch(pattern, reason) for reason in KNOWN), pattern


def test_no_meaning_is_left_of_a_reason_that_has_gone() -> None:
    patterns = source_reasons()[1]
    for reason in KNOWN - possible_reasons():
        if ":" in reason:
            assert "<error>" in reason or any(re.fullmatch(pattern, reason) for pattern in patterns), reason


def test_every_reason_of_rejection_has_a_meaning() -> None:
    found = set()
    for tree in trees("pipeline"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("reject", "Rejected"):
                found |= {part.value for part in node.args[1:] if isinstance(part, ast.Constant)}
    assert {"broken_xml", "no_title"} <= found
    assert found - {""} <= set(MEANINGS["rejected"])


@pytest.mark.slow
def test_the_demos_drops_have_meanings(demo: Path) -> None:
    for path in demo.glob("work/*/manifest.json"):
        manifest = json.loads(path.read_text())
        assert set(manifest["drops"]) <= set(MEANINGS["drops"].get(manifest["stage"], {})), path


# The reference


def test_every_table_is_on_its_stages_page() -> None:
    """Every table of pipeline/schemas.toml with every column, its type and its meaning."""
    from pipeline.schemas import TABLES

    assert set(TABLES) <= set(generated.stages())
    for stage, tables in TABLES.items():
        page = generated.stage_page(stage, generated.stages()[stage])
        for name, columns in tables.items():
            assert f"## Table `{name}`" in page
            assert columns.meanings.keys() == set(columns.schema.names)
            for field in columns.schema:
                assert f"| `{field.name}` | `{generated.type_name(field.type)}` |" in page


def test_the_run_files_page_has_every_field_and_stages_pages_what_is_their_own() -> None:
    made = generated.run_page()
    for table, name, option in all_options():
        assert f"\n## {table}\n" in made
        assert f"| `{name}` | {generated.cell(option.kind.wanted)} |" in made, f"[{table}] {name}"
    for name, stage in generated.stages().items():
        assert all(f"| `{flag}` |" in generated.stage_page(name, stage) for flag in own_parameters(stage))


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=str)
def test_files_of_runs_and_of_rules_that_are_shown_are_ones(block: Block, tmp_path: Path) -> None:
    if "templates" in (tables := tomllib.loads(block.text)):
        (tmp_path / "rules.toml").write_text(block.text, encoding="utf-8")
        assert read_rules(str(tmp_path / "rules.toml")) == block.text
    else:
        Run.of_tables(tables, workdir="", source=str(block))


def test_the_readme_lists_every_stage() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in generated.stages():
        assert f"`{name}`" in readme


def test_the_picture_names_stages() -> None:
    names = re.findall(r'class="(?:stage|end)"[^>]*>([^<]+)<', (DOCS / "chain.svg").read_text(encoding="utf-8"))
    for name in {each for text in names for each in text.split(", ")} - {"entity linker"}:
        assert name in generated.stages(), name


def test_the_reference_can_be_made() -> None:
    made = generated.pages()
    for name in ("reference/commands.md", "reference/calls.md", "reference/run.md", "results/index.md"):
        assert len(made[name]) > 500
    for module in MEANINGS["commands"]["modules"]:
        assert f"## python -m {module}" in made["reference/commands.md"], module


@pytest.mark.slow
def test_the_documentation_is_made_without_a_warning(tmp_path: Path) -> None:
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason="pip install '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


# Links


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub and Sphinx link to them."""
    headings = re.findall(r"^#{1,4} (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    text = "\n".join(page.read_text(encoding="utf-8").split("```")[::2])
    for target in re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if path.relative_to(ROOT).as_posix().startswith(MADE):
            continue  # Sphinx looks
        assert path.is_file(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(path), f"{page.name}: {target}"


def test_every_page_is_in_the_table_of_contents() -> None:
    for page in DOCS.rglob("*.md"):
        if page.name == "index.md" or page not in PAGES:
            continue
        listed = (page.parent / "index.md").read_text(encoding="utf-8")
        assert f"\n{page.stem}\n" in listed, page


# Figures that are computed


def test_the_computed_hours_are_the_papers_minutes() -> None:
    """Of each table tasks and variants are those of its columns and rows; hours are minutes, GPUs and three seeds."""
    from tasks.finetuning.paper import DATASETS, TABLES, VARIANT_OF_ROW, fine_tuning

    text = (DOCS / "how-to" / "paper.md").read_text(encoding="utf-8")
    rows = {task: fine_tuning(task) for task in DATASETS}
    minutes = {task: int(str(row["Training time"]).removesuffix("min")) for task, row in rows.items()}
    hours = {task: minutes[task] * row["Number of GPUs"] / 60 for task, row in rows.items()}
    lines = re.findall(r"^\| ([1-8]) [^|]+ \| (.+?) \| `(.+?)` \| (\d+)(?: and the pretraining)? \|$", text, re.M)
    tables = [table for table in TABLES if table.measures]  # the others are of hyper-parameters
    for table, (number, tasks, variants, printed) in zip(tables, lines, strict=True):
        names = [*DATASETS] if tasks == "all five" else tasks.strip("`").split(",")
        assert int(number) == table.number
        assert {*names} == {measure.task for measure in table.measures}
        rows = {VARIANT_OF_ROW[row.name] for row in table.rows if row.name in VARIANT_OF_ROW}
        assert {*variants.split(",")} == rows
        assert abs(3 * len(variants.split(",")) * sum(map(hours.get, names)) - int(printed)) <= 0.5
    cells = {
        (measure.task, VARIANT_OF_ROW[row.name])
        for table in tables
        for row in table.rows
        if row.name in VARIANT_OF_ROW
        for measure in table.measures
    }
    assert f"{3 * 5 * sum(hours.values()):.0f} GPU-hours" in text
    assert f"tables show {3 * sum(hours[task] for task, _ in cells):.0f}" in text


def test_what_large_needs_is_computed_as_the_page_says() -> None:

    from model.luke.batch import Shape
    from model.luke.config import PRESETS
    from model.pretraining.recipes import _KEPT_BYTES, MASKED_SHARE, PAPER_RECIPE
    from model.pretraining.throughput import training_flops
    from model.sizes import parameter_counts
    from tests.model.luke.test_flat import KEPT_BY_KERNELS

    text = (DOCS / "explanation" / "needs.md").read_text(encoding="utf-8")
    config, rate, entities = PRESETS["large"], 790e12 * 0.35, 20
    masked = round(MASKED_SHARE * 510), round(PAPER_RECIPE.masked_entity_share * entities)
    one, size = Shape(((512, entities),), 0, *masked), PAPER_RECIPE.batch_size
    days = [
        phase.steps * size * training_flops(config, one, encoder_trains=phase.trainable == "all") / rate / 86400
        for phase in PAPER_RECIPE.phases
    ]
    for gpus in (1, 8, 16):
        first, second = (each / gpus for each in days)
        assert f"| {gpus} | {first:.1f} + {second:.1f} = {first + second:.1f} days |" in text
    parameters = sum(parameter_counts(config).values())
    assert f"{parameters / 1e6:.0f} million" in text
    assert f"{16 * parameters / 1e9:.1f} GB" in text
    assert f"{12 * parameters / 1e9:.1f} GB" in text
    assert f"{KEPT_BY_KERNELS} bytes for each token, hidden unit and layer, and {_KEPT_BYTES['bf16']} without" in text
    fixed, width = 18 * parameters, config.hidden_size  # with copies in bf16
    for memory in (24, 40, 80):
        recipe = PAPER_RECIPE.on_device(config, gpu_bytes=memory * 10**9, has_bf16=True, profile="fixed")
        tokens = recipe.tokens_per_batch
        states = KEPT_BY_KERNELS * tokens * width * config.num_hidden_layers
        sizes = [f"{each / 1e9:.1f} GB" for each in (fixed, states)]
        assert f"| {tokens:,} | {' | '.join(sizes)} | {(fixed + states) / 1e9:.0f} GB |" in text
    # With checkpointing, of the largest micro-batch: each layer's input, and one layer's states.
    again = (2 * config.num_hidden_layers + KEPT_BY_KERNELS) * tokens * width
    logits = masked[0] * config.vocab_size + masked[1] * config.entity_vocab_size
    logits *= 2 * tokens / (512 + entities)
    assert f"take {logits / 1e9:.1f} GB more" in text
    whole, less = ((fixed + each + logits) / 1e9 for each in (states, again))
    assert f"{whole:.0f} GB, {less:.0f} GB with `gradient_checkpointing`" in text
