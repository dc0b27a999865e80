"""WORKDIR/run.toml: changed by flags, and written whole; a user's own lines and comments stay."""

import contextlib
import fcntl
import logging
import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit

from model.pretraining import configuration
from model.pretraining.recipes import SCRATCH
from pipeline import storage
from workflows.run.document import VERSION, parse, path_of, read
from workflows.run.kinds import AUTO, Option, resolved, similar
from workflows.run.tables import TABLES
from workflows.run.values import PRESET, Run, checked, defaults, elsewhere, options

logger = logging.getLogger("workflows")

_WIDTH = 110


@dataclass(frozen=True)
class Change:
    """A value that the command line gives: of a field of a table, or of a key in such a field."""

    table: str
    field: str
    key: str
    text: str
    said: str

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.table, self.field, self.key)))


def change_run(workdir: str, changes: Sequence[Change] = (), begin: str = "", *, writes: bool = True) -> Run:
    """Change the run file of a work directory, and say in a line what changed; gives the run that it now describes.

    The first call writes the file. Nothing is written where the result would be wrong.

    Args:
        workdir: the work directory.
        changes: what the command line gives.
        begin: a run file to begin from; empty: that of the work directory.
        writes: whether the file is changed; otherwise the run that it would describe is given.

    Raises:
        ValueError: names file, table and field, the value found and the value wanted.
    """
    path = path_of(workdir)
    with _one_at_a_time(workdir) if writes else contextlib.nullcontext():
        before = read(path) if os.path.exists(path) else ""
        document = _begun(begin, path) if begin else parse(before or template(), path)
        lines = [_apply(document, change, path) for change in changes]
        run = Run.of_tables(document.unwrap(), workdir=workdir, source=path)
        _check_recipe(run, path)
        after = tomlkit.dumps(document)
        if writes and after != before:
            storage.write_bytes(path, after.encode())
            if begin and before:
                logger.info("%s: as %s (another run was here)", path, begin)
            if not before and document.get("preset", AUTO) == AUTO:
                base = run.pretraining.base_model
                why = "without a base model" if base == SCRATCH else f"around {base}"
                logger.info("%s: preset %s, as none is given, %s", path, run.preset, why)
            for line in filter(None, lines if before and not begin else ()):
                logger.info("%s: %s", path, line)
    return run


def parse_set(text: str) -> Change:
    """The change that `--set table.field=value` asks for. Raises: ValueError for another form or an unknown name."""
    name, is_given, value = text.partition("=")
    table, _, rest = name.partition(".")
    field, _, key = rest.partition(".")
    said = f"--set {name}"
    if table == "machine" and rest.startswith("spark_conf."):  # whose values have names with "="
        key, is_given, value = text.removeprefix("machine.spark_conf.").partition("=")
    if not is_given or not field:
        near = "" if "." in name else elsewhere(name)
        raise ValueError(f"--set {text}: wanted table.field=value, as corpus.vocab_size=1000{near}")
    if table not in TABLES:
        raise ValueError(f"{said}: no table {table}{similar(table, TABLES)} (there are {', '.join(TABLES)})")
    if field not in options(table):
        hint = similar(field, options(table)) or elsewhere(field)
        raise ValueError(f"{said}: [{table}] has no field {field}{hint}")
    return Change(table, field, key, value, said)


def option_of(table: str, field: str) -> Option:
    """The declaration of a field; that of the preset stands in no table."""
    return options(table)[field] if table else PRESET


def _apply(document: tomlkit.TOMLDocument, change: Change, path: str) -> str:
    """Put a value into the document; gives the line that says so, or nothing where it was that already."""
    option = option_of(change.table, change.field)
    kind, default = option.kind, defaults(change.table).get(change.field) if change.table else AUTO
    if change.key:
        if not kind.of_items:
            raise ValueError(f"{change.said}: {change.table}.{change.field} has no keys")
        kind, default = kind.of_items, None
        if (known := option.kind.keys) and change.key not in known:
            hint = similar(change.key, known)
            raise ValueError(f"{change.said}: no {change.key}{hint} (there are {', '.join(known)})")
    value = change.text if change.text == AUTO and default == AUTO else kind.of_text(change.text)
    checked(Option(kind, ""), value, change.said, default)
    value = resolved(value, kind, os.getcwd())
    holder: Any = document
    for name in (change.table, change.field if change.key else ""):
        if name:
            holder = holder.setdefault(name, tomlkit.table())
    field = change.key or change.field
    before = holder.get(field, default)
    holder[field] = value
    return "" if before == value else f"{change.name} = {value}{'' if before is None else f' (was {before})'}"


def _check_recipe(run: Run, path: str) -> None:
    """Raises: ValueError for a value of [pretraining] that cannot be, or not beside the others."""
    pretraining = run.pretraining
    try:
        preset = configuration.of_preset(run.preset, pretraining.base_model, entities=True)
        configuration.changed(preset, pretraining.recipe)
    except ValueError as error:
        raise ValueError(f"{path}: [pretraining] {error}") from None


def _begun(begin: str, path: str) -> tomlkit.TOMLDocument:
    """A run file of one's own as a document for the work directory: its paths are made absolute."""
    document = parse(read(begin), begin)
    Run.of_tables(document.unwrap(), workdir="", source=begin)
    for table in TABLES:
        for field, option in options(table).items() if table in document else ():
            values: Any = document[table]
            if field in values and option.kind.is_path:
                folder = os.path.dirname(os.path.abspath(begin))
                values[field] = resolved(values[field], option.kind, folder)
    return document


def template() -> str:
    """A run file without values: every table, with a comment for each field."""
    lines = [
        "# What this work directory is built from. Flags of the command line change it; so may you.",
        "# A field that is not given has its default, or the preset's value.",
        f"version = {VERSION}",
        "",
        *_comment("preset", PRESET, AUTO),
    ]
    for table in TABLES:
        by_default = defaults(table)
        lines += ["", f"[{table}]"]
        for field, option in options(table).items():
            lines += _comment(field, option, by_default.get(field))
    return "\n".join(lines) + "\n"


def _comment(field: str, option: Option, default: Any) -> list[str]:
    shown = "" if default in (None, "", {}) else f" ({_shown(default)})"
    text = f"{field}: {option.help}{shown}"
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#     ")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextlib.contextmanager
def _one_at_a_time(workdir: str) -> Iterator[None]:
    """Hold the run file against other commands that change it."""
    storage.make_folder(workdir)
    with open(os.path.join(workdir, ".run.lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
