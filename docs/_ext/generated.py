"""The pages that are made from the code: stages, drop reasons, command lines, Python calls, dated results.

They are written below docs/ before Sphinx looks for pages, and git ignores them. What the code cannot say of itself,
such as the meaning of a drop reason, stands in docs/reference/meanings.toml.
"""

import argparse
import ast
import functools
import importlib
import inspect
import re
import runpy
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from model.presets import PRESET_TABLES
from model.pretraining.recipes import of_preset
from workflows.base.commandline import steps
from workflows.run.options import PRESET, defaults, options
from workflows.run.tables import TABLES

DOCS = Path(__file__).resolve().parent.parent
LOG = DOCS.parent / "benchmarks" / "LOG.md"
RESULTS = DOCS.parent / "benchmarks" / "results"
MEANINGS: dict[str, Any] = tomllib.loads((DOCS / "reference" / "meanings.toml").read_text(encoding="utf-8"))
NOTE = "<!-- Made from the code by docs/_ext/generated.py. -->\n\n"


@functools.cache
def stages() -> dict[str, Any]:
    """Every stage that can be run, each behind those that come before it."""
    found = {name: step for name, step in steps().items() if step.__module__.startswith("workflows.")}
    return dict(sorted(found.items(), key=lambda item: len(item[1]().upstream())))


# Text


def cell(text: object) -> str:
    """A text that stays in one cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;").replace("$", "\\$")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def documentation(thing: Any) -> str:
    """A docstring as Markdown: the sections of arguments and the like become lists."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    parts: list[str] = []
    in_section = False
    for line in lines:
        heading = re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields):", line)
        if heading:
            in_section = True
            parts += ["", f"**{heading[1].replace('Args', 'Arguments')}**", ""]
        elif in_section and (entry := re.match(r"    ([\w, *]+): (.*)", line)):
            parts.append(f"- `{entry[1]}`: {entry[2]}")
        elif in_section and line.startswith("    "):
            parts.append(f"  {line.strip()}" if parts and parts[-1] else line.strip())
        else:
            in_section = in_section and not line
            parts.append(line)
    text = "\n".join(parts).replace("``", "`").replace("$", "\\$")
    return re.sub(r"<(?=\w)", "&lt;", text)


# Stages


def parameter_rows(stage: Any) -> list[list[str]]:
    """Flag, default and meaning of what tells a stage from its siblings."""
    rows = []
    for name, parameter in stage.get_params():
        if name != "settings":
            choices = ", ".join(map(code, sorted(getattr(parameter, "_choices", ()))))
            said = str(parameter.description).partition(" Choices:")[0]
            default = "off" if parameter._default is False else code(parameter._default)
            rows.append([f"`--{name}`", default, cell(f"{said}: {choices}" if choices else said)])
    return rows


def required(stage: Any) -> list[str]:
    """The stages that come before, with every parameter at its default."""
    return [type(each).__name__ for each in stage().requires().values()]


def type_name(kind: Any) -> str:
    """A column's type, lists by what is in them: `list<int32>`."""
    return str(kind).replace("item: ", "").replace("element: ", "")


def column_table(columns: Any) -> str:
    """The columns of a table of pipeline/schemas.toml."""
    rows = [[code(each.name), code(type_name(each.type)), cell(columns.meanings[each.name])] for each in columns.schema]
    return table(["column", "type", "meaning"], rows)


def drop_table(reasons: Mapping[str, str]) -> str:
    return table(["reason", "meaning"], [[code(reason), cell(text)] for reason, text in reasons.items()])


def stage_page(name: str, stage: Any) -> str:
    """The page of one stage."""
    parts = [f"{NOTE}# {name}\n", documentation(stage), ""]
    facts = [f"Module: `{stage.__module__}`."]
    if hasattr(stage, "FOLDER"):
        facts.append(f"Folder: `WORKDIR/{stage.FOLDER}-<hash>`. Version: {stage.VERSION}.")
    before = required(stage)
    links = ", ".join(f"[{each}]({each}.md)" for each in before)
    facts.append(f"Needs: {links}." if before else "Needs no other stage.")
    if need := getattr(stage, "NEED", None):
        aside = f", and Spark sets {need.scratch:g} aside" if need.scratch else ""
        facts.append(f"[Disk](../../tutorials/your-wiki.md#disk): {need.written:g} bytes for a byte of input{aside}.")
    parts += ["\n\n".join(facts), "", "```sh", f"luke run {name} --help", "```", ""]
    if files := MEANINGS["files"].get(name):
        parts += ["## Files", "", table(["file", "content"], [[code(k), cell(v)] for k, v in files.items()])]
    for each, columns in find("pipeline.schemas").TABLES.get(name, {}).items():
        parts += [f"## Table `{each}`", "", column_table(columns)]
    if reasons := MEANINGS["rejected"] if name == "ExtractPages" else {}:
        parts += ["## Reasons of rejection", "", drop_table(reasons)]
    if reasons := MEANINGS["drops"].get(name):
        parts += ["## Drop reasons", "", drop_table(reasons)]
    parts += ["## Values", "", MEANINGS["stages"]["values"], ""]
    parts += [", ".join(f"[`[{each}]`](../run.md#{each})" for each in TABLES if each in stage.TABLES) + ".", ""]
    if rows := parameter_rows(stage):
        parts += [table(["flag of its own", "default", "meaning"], rows)]
    return "\n".join(parts)


# Command lines


class _Parser(Exception):
    """Carries a program's argument parser out of it."""


def parser_of(module: str) -> argparse.ArgumentParser:
    """The parser of `python -m MODULE`, caught as it begins to parse."""

    def caught(self: argparse.ArgumentParser, *_: Any, **__: Any) -> Any:
        raise _Parser(self)

    with mock.patch.object(argparse.ArgumentParser, "parse_args", caught), mock.patch.object(sys, "argv", [module]):
        loaded = sys.modules.pop(module, None)  # runpy warns of what it runs a second time
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except _Parser as found:
            parser = found.args[0]
            assert isinstance(parser, argparse.ArgumentParser)
            return parser
        finally:
            if loaded:
                sys.modules[module] = loaded
    raise ValueError(f"python -m {module}: parses no arguments")


def option_rows(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        values = f" {{{','.join(map(str, action.choices))}}}" if action.choices else ""
        has_default = not (action.default is None or action.default == "" or action.nargs == 0)
        default = code(action.default) if has_default and action.option_strings else ""
        if action.required and action.option_strings:
            default = "required"
        text = action.help or ""
        if has_default:  # it has a column
            text = re.sub(r" ?\(default: [^)]*(\)s)?\)$", "", text)
        text = text % {**vars(action), "prog": parser.prog} if "%" in text else text
        yield [code(name + values), cell(default), cell(text)]


def command_section(parser: argparse.ArgumentParser) -> Iterator[str]:
    """A heading, what the command does, and its options; one for each subcommand."""
    children = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not children:
        yield from (f"## {parser.prog}", "", cell(parser.description or ""), "")
        rows = list(option_rows(parser))
        yield table(["argument", "default", "meaning"], rows)
    for action in children:
        helps = {each.dest: each.help for each in action._choices_actions}
        for name, child in action.choices.items():
            said = helps[name] or ""
            child.description = child.description or f"{said[:1].upper()}{said[1:]}."
            yield from command_section(child)


def commands_page() -> str:
    parts = [f"{NOTE}# Command lines\n", MEANINGS["commands"]["introduction"], ""]
    for module in MEANINGS["commands"]["modules"]:
        parts += command_section(parser_of(module))
    return "\n".join(parts)


# Python calls


def find(name: str) -> Any:
    """The module or the object of a dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            thing: Any = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            thing = getattr(thing, attribute)
        return thing
    raise ValueError(f"docs/reference/meanings.toml: there is no {name}")


def signature(name: str, thing: Any) -> str:
    """Return its signature, an argument a line where it is long."""
    if not callable(thing):
        return name
    text = f"{name}{inspect.signature(thing)}"
    text = re.sub(r"<function .*?>|<object object.*?>", "...", text)
    text = re.sub(r"\b(?:pathlib(?:\._local)?|collections\.abc|typing)\.", "", text)
    text = re.sub(r"(?<=: |> )'([^']*)'", r"\1", text)  # names that are annotated as texts
    text = re.sub(r"\b(?:pipeline|model|tasks)\.[\w.]+\.(?=[A-Z])", "", text)
    text = text.replace("(self, ", "(").replace("(self)", "()")
    if len(text) <= 100:
        return text
    text = re.sub(r"(?<=[(,]) ?(?=[\w*]+[:=,)]|\*,)", "\n    ", text)
    return re.sub(r"\)(?= ->|$)", "\n)", text, count=1)


def attributes(thing: type) -> Iterator[str]:
    """Return the comments of a class's fields as a list: those behind a field, or the lines of one before it."""
    above: list[str] = []
    for line in inspect.getsource(thing).splitlines():
        if line.startswith("    # "):
            above.append(line.removeprefix("    # "))
            continue
        field = re.match(r"    (\w+): .*?(?:  # (.*))?$", line)
        if field and (text := field[2] or " ".join(above)):
            yield f"- `{field[1]}`: {text}"
        above = []


def call_section(name: str) -> Iterator[str]:
    thing = find(name)
    yield from (f"### {name.rpartition('.')[2]}", "", f"`{name}`", "")
    yield from ("```text", signature(name.rpartition(".")[2], thing), "```", "", documentation(thing), "")
    if inspect.isclass(thing):
        if fields := [*attributes(thing)]:
            yield from ("**Attributes**", "", *fields, "")
        members = [(key, value) for key, value in vars(thing).items() if is_public(key, value)]
        for key, value in members:
            method = getattr(thing, key) if isinstance(value, classmethod) else value
            yield from ("```text", signature(key, method), "```", "", documentation(method), "")


def is_public(name: str, value: Any) -> bool:
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    return not name.startswith("_") and inspect.isfunction(function) and bool(function.__doc__)


def calls_page() -> str:
    parts = [f"{NOTE}# Python calls\n", MEANINGS["calls"]["introduction"], ""]
    for group in MEANINGS["calls"]["groups"]:
        parts += [f"## {group['title']}", "", group["text"], ""]
        for name in group["names"]:
            parts += call_section(name)
    return "\n".join(parts)


# The run file


def run_page() -> str:
    """Each table of a run file, with its fields and the presets' values."""
    parts = [f"{NOTE}# The run file\n", MEANINGS["run"]["introduction"], "", "## preset", ""]
    parts += [field_table({"preset": PRESET}, {"preset": "auto"})]
    for name, declared in TABLES.items():
        parts += [f"## {name}", "", str(declared.__doc__), "", field_table(options(name), defaults(name))]
        presets = [values_of(preset, name) for preset in PRESET_TABLES]
        named = [field for field in options(name) if any(field in values for values in presets)]
        rows = [[code(field), *(shown(values.get(field, "")) for values in presets)] for field in named]
        if rows:
            parts += ["Values of the presets:", "", table(["field", *PRESET_TABLES], rows)]
    return "\n".join(parts)


def field_table(fields: Mapping[str, Any], by_default: Mapping[str, Any]) -> str:
    """The declarations of options, a row each."""
    rows = [
        [
            code(name),
            cell(option.kind.wanted),
            shown(by_default.get(name, "the preset's")),
            code(option.flag),
            cell(option.help),
            "yes" if option.changes_bytes else "no",
        ]
        for name, option in fields.items()
    ]
    return table(["field", "value", "default", "flag", "meaning", "changes bytes"], rows)


def values_of(preset: str, name: str) -> Mapping[str, Any]:
    """A preset's values for a table; for pretraining also those that the model itself has by default."""
    if name == "pretraining":
        return of_preset(preset, "scratch", entities=True).table()
    return PRESET_TABLES[preset].get(name, {})


def shown(value: Any) -> str:
    """A value as a run file has it; words about it as they are."""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, list | tuple):
        return code(", ".join(map(str, value)))
    return str(value) if " " in str(value) else code("" if value == {} else value)


# Folders


def folders_page() -> str:
    """Return a section for each package: its docstring, and the packages that it may import."""
    arrows = tomllib.loads((DOCS / "reference" / "arrows.toml").read_text(encoding="utf-8"))
    parts = [f"{NOTE}# Folders\n", MEANINGS["folders"]["introduction"], ""]
    for package in ("pipeline", "model", "tasks", "workflows"):
        for path in sorted((DOCS.parent / package).rglob("__init__.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            first, _, rest = (ast.get_docstring(tree) or "").partition("\n\n")
            name = path.parent.relative_to(DOCS.parent).as_posix()
            parts += [f"{'##' if '/' not in name else '###'} {name}", "", first, ""]
            if "|---|" in rest:
                parts += [rest, ""]
            elif rest:
                parts += ["```text", rest, "```", ""]
            if (own := name.replace("/", ".")) in arrows and "/" in name:
                allowed = [f"`{each}`" for each in arrows[own]]
                parts += [f"May import {', '.join(allowed) or 'nothing else of ours'}.", ""]
    return "\n".join(parts)


# Dated results


def result_pages() -> dict[str, str]:
    """The log and the results of benchmarks as pages, and a list of them."""
    pages = {}
    for path in sorted(RESULTS.iterdir()):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            pages[f"results/{path.stem}.md"] = text.replace("```mermaid", "```text")
        elif path.suffix == ".txt":
            name = f"{path.stem[11:].capitalize()}, {path.stem[:10]}"
            pages[f"results/{path.stem}.md"] = f"# {name}\n\n```text\n{text}\n```\n"
    names = [path.removeprefix("results/").removesuffix(".md") for path in pages]
    listed = "\n".join(["log", *sorted(names, reverse=True)])
    text = MEANINGS["results"]["introduction"]
    log = LOG.read_text(encoding="utf-8").replace("](../docs/", "](../")
    pages["results/log.md"] = re.sub(r"\]\(results/([\w-]+)\.(?:md|txt)", r"](\1.md", log)
    return {**pages, "results/index.md": f"# Dated results\n\n{text}\n\n```{{toctree}}\n\n{listed}\n```\n"}


# Writing


def pages() -> dict[str, str]:
    """Every generated page by its path below docs/."""
    found = stages()
    made = {f"reference/stages/{name}.md": stage_page(name, stage) for name, stage in found.items()}
    listed = "\n".join(found)
    made["reference/stages/index.md"] = (
        f"# Stages\n\n{MEANINGS['stages']['introduction']}\n\n```{{toctree}}\n\n{listed}\n```\n"
    )
    makers: dict[str, Callable[[], str]] = {
        "commands": commands_page,
        "calls": calls_page,
        "run": run_page,
        "folders": folders_page,
    }
    made |= {f"reference/{name}.md": maker() for name, maker in makers.items()}
    return {**made, **result_pages()}


def write(_: Any = None) -> None:
    made = pages()
    for folder in ("reference/stages", "results"):
        for path in (DOCS / folder).glob("*.md"):
            if path.relative_to(DOCS).as_posix() not in made:
                path.unlink()
    for name, text in made.items():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def point_into_the_pages(_: Any, __: str, source: list[str]) -> None:
    """In the repository a result and the log are files of benchmarks/; here they are pages."""
    source[0] = re.sub(r"(?<=\.\./)\.\./benchmarks/results/([\w-]+)\.(?:md|txt)", r"results/\1.md", source[0])
    source[0] = re.sub(r"(?<=\.\./)\.\./benchmarks/LOG\.md", "results/log.md", source[0])


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write)
    app.connect("source-read", point_into_the_pages)
    return {"parallel_read_safe": True}
