"""Help of `luigi --module workflows STAGE --help`: what a stage does, what comes before it, flags, tables, examples."""

import contextlib
import inspect
import textwrap
from collections.abc import Mapping

from workflows.base.stage import Step
from workflows.run.options import HELP, PRESET, all_options, homes, option_of, options
from workflows.run.tables import TABLES

GENERAL: Mapping[str, str] = HELP["flags"]  # of all commands
_WIDTH = 110


def flag(name: str) -> str:
    """The flag of a parameter."""
    return "--" + name.replace("_", "-")


def own_parameters(stage: type[Step]) -> dict[str, str]:
    """The flags of what tells a stage from its siblings, with the names of its parameters."""
    return {flag(name): name for name, _ in stage.get_params() if name != "settings"}


def run_flags(stage: type[Step]) -> dict[str, tuple[str, str]]:
    """The flags of a run with table and field. Stages of fine-tuning take those of fine-tuning before all others."""
    found, is_tuning = {PRESET.flag: ("", "preset")}, is_about_one_task(stage)
    for table, name, option in all_options():
        is_first = option.flag not in found and (is_tuning or not option.kind.keys)  # a task has data
        if option.flag and (is_first or (is_tuning and table == "fine_tuning")):
            found[option.flag] = (table, name)
    return {name: of for name, of in found.items() if name not in own_parameters(stage)}


def is_about_one_task(stage: type[Step]) -> bool:
    """Return whether a stage is about one task of fine-tuning."""
    return "task" in own_parameters(stage).values()


def home_of(flag: str) -> str:
    """A hint at the fields that have a flag's name; empty where none has."""
    name = flag.removeprefix("--").replace("-", "_")
    found = [f"--set {table}.{name}=VALUE" for table in homes(name)]
    return f"; wanted {' or '.join(found)}" if found else ""


def overview(steps: Mapping[str, type[Step]]) -> str:
    """All stages, a line each."""
    width = max(map(len, steps))
    lines = ["luigi --module workflows STAGE [flags], or luke run STAGE [flags]; STAGE --help says more", ""]
    return "\n".join([*lines, *(f"{name:<{width}}  {_first_line(step)}" for name, step in steps.items())])


def _first_line(step: type[Step]) -> str:
    text = (inspect.getdoc(step) or "").partition("\n\n")[0].replace("\n", " ")
    return textwrap.shorten(text, _WIDTH, placeholder=" ...")


def of_stage(stage: type[Step]) -> str:
    """The help of a stage."""
    name = stage.__name__
    lines = [f"luigi --module workflows {name} [flags]", "", inspect.getdoc(stage) or ""]
    before: list[str] = []
    with contextlib.suppress(ValueError, OSError):  # of a default run
        before = [type(each).__name__ for each in stage().upstream()]
    if before:
        lines += ["", *_wrapped(f"Runs before it, where they are not done: {', '.join(before)}.", 0)]
    parameters = dict(stage.get_params())
    own = {
        each: f"{parameters[of].description} (default: {str(parameters[of]._default).lower()})"
        for each, of in own_parameters(stage).items()
    }
    for head, texts in (
        ("These flags are about this command alone:", {**own, **GENERAL}),
        (
            "These change WORKDIR/run.toml, as --set does, and later commands remember them:",
            {each: _said(*of) for each, of in run_flags(stage).items()},
        ),
    ):
        lines += ["", *_wrapped(head, 0)]
        for each, text in texts.items():
            lines += _wrapped(f"  {each:<16} {text}", 19)
    lines += ["", "Fields of the tables that it reads, for --set and for the file, which explains each:"]
    for table in TABLES:
        if table in stage.TABLES:
            lines += _wrapped(f"[{table}] {', '.join(options(table))}", 4)
    return "\n".join([*lines, "", "Examples", *_examples(stage)])


def _said(table: str, name: str) -> str:
    """The first thought of an option's help."""
    text = option_of(table, name).help
    return f"{text.partition('; ')[0]}{f' ([{table}])' if table else ''}"


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=" " * indent, break_long_words=False)


def _examples(stage: type[Step]) -> list[str]:
    name = stage.__name__
    first = "--task ner --data DIR" if is_about_one_task(stage) else "--dump simplewiki"
    second = "--set fine_tuning.epochs=5" if "fine_tuning" in stage.TABLES else "--set corpus.vocab_size=100000"
    return [
        f"  luigi --module workflows {name} --workdir simple {first}",
        f"  luigi --module workflows {name} --workdir simple {second} --dry-run",
    ]
