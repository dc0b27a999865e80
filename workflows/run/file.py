"""A run: the tables of WORKDIR/run.toml as values, changed by flags, and written whole.

Values that are left open are the preset's. A user's own lines and comments in the file stay.
"""

import contextlib
import functools
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import tomlkit

from model.presets import PRESET_TABLES
from model.pretraining.recipes import SCRATCH, changed, of_preset
from pipeline import storage
from pipeline.storage.locks import one_at_a_time
from workflows.run.document import parse, path_of, template
from workflows.run.document import read as text_of
from workflows.run.kinds import AUTO, Kind, resolved, similar
from workflows.run.options import PRESET, defaults, elsewhere, option_of, options
from workflows.run.tables import RECIPE, TABLES, Corpus, FineTuning, Linking, Machine, Pretraining, Sequences

logger = logging.getLogger("workflows")

WORKDIR = "work"


@dataclass(frozen=True)
class Run:
    """The values that a work directory is built from.

    What is `auto` and stands in the preset gets the preset's value, so that a stage finds it resolved.
    """

    workdir: str = WORKDIR
    preset: str = AUTO
    corpus: Corpus = field(default_factory=Corpus)
    sequences: Sequences = field(default_factory=Sequences)
    pretraining: Pretraining = field(default_factory=Pretraining)
    fine_tuning: FineTuning = field(default_factory=FineTuning)
    linking: Linking = field(default_factory=Linking)
    machine: Machine = field(default_factory=Machine)

    def __post_init__(self) -> None:
        if self.preset == AUTO:
            by_base = "tiny" if self.pretraining.base_model == SCRATCH else "base"
            object.__setattr__(self, "preset", by_base)
        for name, values in PRESET_TABLES[self.preset].items():
            table = getattr(self, name)
            if name != "pretraining":
                still_open = {key: value for key, value in values.items() if getattr(table, key) == AUTO}
                object.__setattr__(self, name, replace(table, **still_open))

    def __hash__(self) -> int:
        return hash(self.json)

    @functools.cached_property  # Luigi asks for it thousands of times
    def json(self) -> str:
        """All values as a text, from which `from_json` makes the same run."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """The run of a text that `json` gave."""
        values = json.loads(text).items()
        return cls(**{name: _table(name, value) if name in TABLES else value for name, value in values})

    @classmethod
    def of_tables(cls, tables: Mapping[str, Any], *, workdir: str, source: str) -> "Run":
        """The run of a file's tables, as TOML has them. Paths are relative to the folder of the file, `source`.

        Raises: ValueError: names file, table and field, the value found and the value wanted.
        """
        found: dict[str, Any] = {}
        folder = os.path.dirname(os.path.abspath(source))
        for name, values in tables.items():
            if name == "version":
                continue
            if name == "preset":
                found[name] = checked(PRESET.kind, values, f"{source}: preset", AUTO)
            elif name not in TABLES:
                known = ("preset", *TABLES)
                raise ValueError(
                    f"{source}: [{name}] is no table of a run file{similar(name, known)} (there are {', '.join(known)})"
                )
            elif not isinstance(values, Mapping):
                raise ValueError(f"{source}: {name} is {values!r}, wanted a table [{name}]")
            else:
                found[name] = read_table(name, values, source, folder)
        return cls(workdir, **found)

    @classmethod
    def read(cls, workdir: str = WORKDIR) -> "Run":
        """The run of a work directory's run.toml; without one the defaults. Raises: ValueError: it cannot be read."""
        path = path_of(workdir)
        if not os.path.exists(path):
            return cls(workdir)
        return cls.of_tables(parse(text_of(path), path).unwrap(), workdir=workdir, source=path)


def _table(name: str, values: Mapping[str, Any]) -> Any:
    """A table of values that were checked before, lists as tuples again."""
    return TABLES[name](**{key: tuple(each) if isinstance(each, list) else each for key, each in values.items()})


def read_table(name: str, values: Mapping[str, Any], source: str, folder: str) -> Any:
    """A table of a run file, checked; paths relative to a folder. Raises: ValueError as `Run.of_tables`."""
    known, by_default = options(name), defaults(name)
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            near = similar(key, known) or elsewhere(key)
            raise ValueError(f"{source}: [{name}] {key} is no field{near} (there are {', '.join(known)})")
        read = checked(known[key].kind, value, f"{source}: [{name}] {key}", by_default.get(key))
        found[key] = resolved(read, known[key].kind, folder)
    if name == "pretraining":
        recipe = {key: found.pop(key) for key in list(found) if key in RECIPE}
        return Pretraining(**found, recipe=recipe)
    return TABLES[name](**found)


def checked(kind: Kind, value: Any, place: str, default: Any) -> Any:
    """A value of TOML as a run holds it. Raises: ValueError naming the place, what is found and what is wanted."""
    if value == AUTO and default == AUTO:
        return value
    try:
        return kind.read(value)
    except (ValueError, TypeError):
        wanted = f"{kind.wanted}, or auto" if default == AUTO else kind.wanted
        raise ValueError(f"{place} is {value!r}, wanted {wanted}") from None


@dataclass(frozen=True)
class Change:
    """A value that the command line gives: of a field of a table, or of a key in such a field."""

    table: str
    field: str
    key: str
    text: str
    said: str


def change_run(workdir: str, changes: Sequence[Change] = (), begin: str = "", *, writes: bool = True) -> Run:
    """Change the run file of a work directory, and say in a line what changed; gives the run that it now describes.

    The first call writes the file, or one that begins from the run file `begin`. Nothing is written where the result
    would be wrong, or unless it `writes`. Raises: ValueError: names file, table and field, the value found and the
    value wanted.
    """
    path = path_of(workdir)
    if writes:
        storage.make_folder(workdir)
    with one_at_a_time(os.path.join(workdir, ".run.lock")) if writes else contextlib.nullcontext():
        before = text_of(path) if os.path.exists(path) else ""
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
    checked(kind, value, change.said, default)
    value = resolved(value, kind, os.getcwd())
    holder: Any = document
    for name in (change.table, change.field if change.key else ""):
        if name:
            holder = holder.setdefault(name, tomlkit.table())
    field = change.key or change.field
    before = holder.get(field, default)
    holder[field] = value
    name = ".".join(filter(None, (change.table, change.field, change.key)))
    return "" if before == value else f"{name} = {value}{'' if before is None else f' (was {before})'}"


def _check_recipe(run: Run, path: str) -> None:
    """Raises: ValueError for a value of [pretraining] that cannot be, or not beside the others."""
    pretraining = run.pretraining
    try:
        changed(of_preset(run.preset, pretraining.base_model, entities=True), pretraining.recipe)
    except ValueError as error:
        raise ValueError(f"{path}: [pretraining] {error}") from None


def _begun(begin: str, path: str) -> tomlkit.TOMLDocument:
    """A run file of one's own as a document for the work directory: its paths are made absolute."""
    document = parse(text_of(begin), begin)
    Run.of_tables(document.unwrap(), workdir="", source=begin)
    for table in TABLES:
        for key, option in options(table).items() if table in document else ():
            values: Any = document[table]
            if key in values and option.kind.is_path:
                folder = os.path.dirname(os.path.abspath(begin))
                values[key] = resolved(values[key], option.kind, folder)
    return document
