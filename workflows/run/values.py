"""A run: the tables of a run file as values, those that are left open by its preset."""

import functools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from model.presets import PRESET_TABLES
from model.pretraining.recipes import SCRATCH
from workflows.run.document import parse, path_of
from workflows.run.document import read as text_of
from workflows.run.kinds import AUTO, Option, one_of, resolved, similar
from workflows.run.tables import RECIPE, TABLES, Corpus, FineTuning, Linking, Machine, Pretraining, Sequences

PRESET = Option(
    one_of(*PRESET_TABLES),
    "sizes of model, vocabularies and training; auto: tiny, or base around a base model",
    "--preset",
)
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
        return hash(self._text)

    def tables(self) -> dict[str, Any]:
        """All values as JSON has them."""
        return asdict(self)

    def to_json(self) -> str:
        """All values as a text, from which `from_json` makes the same run."""
        return self._text

    @functools.cached_property
    def _text(self) -> str:
        return json.dumps(self.tables(), sort_keys=True)  # Luigi asks for it thousands of times

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """The run of a text that `to_json` made."""
        values = json.loads(text)
        return cls(
            **{name: _table(name, value) if name in TABLES else value for name, value in values.items()}
        )

    @classmethod
    def of_tables(cls, tables: Mapping[str, Any], *, workdir: str, source: str) -> "Run":
        """The run of a file's tables. Paths are relative to the file's folder.

        Args:
            tables: as TOML has them.
            workdir: the folder of all stages.
            source: the file, for errors.

        Raises:
            ValueError: names file, table and field, the value found and the value wanted.
        """
        found: dict[str, Any] = {}
        folder = os.path.dirname(os.path.abspath(source))
        for name, values in tables.items():
            if name == "version":
                continue
            if name == "preset":
                found[name] = checked(PRESET, values, f"{source}: preset", AUTO)
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
        """The run of a work directory, by its run.toml; the defaults where there is none.

        Raises: ValueError where the file cannot be read.
        """
        path = path_of(workdir)
        if not os.path.exists(path):
            return cls(workdir)
        return cls.of_tables(parse(text_of(path), path).unwrap(), workdir=workdir, source=path)


def _table(name: str, values: Mapping[str, Any]) -> Any:
    """A table of values that were checked before, lists as tuples again."""
    return TABLES[name](
        **{key: tuple(each) if isinstance(each, list) else each for key, each in values.items()}
    )


def options(name: str) -> dict[str, Option]:
    """The options of a table by the names of their fields."""
    own = {
        field.name: field.metadata["option"] for field in fields(TABLES[name]) if "option" in field.metadata
    }
    return {**own, **RECIPE} if name == "pretraining" else own


def defaults(name: str) -> dict[str, Any]:
    """The default of each option of a table; none of a recipe's, which are the preset's."""
    table = TABLES[name]()
    return {key: getattr(table, key) for key in options(name) if hasattr(table, key)}


def read_table(name: str, values: Mapping[str, Any], source: str, folder: str) -> Any:
    """A table of a run file, checked; paths relative to a folder. Raises: ValueError as `Run.of_tables`."""
    known, by_default = options(name), defaults(name)
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            near = similar(key, known) or elsewhere(key)
            raise ValueError(f"{source}: [{name}] {key} is no field{near} (there are {', '.join(known)})")
        read = checked(known[key], value, f"{source}: [{name}] {key}", by_default.get(key))
        found[key] = resolved(read, known[key].kind, folder)
    if name == "pretraining":
        recipe = {key: found.pop(key) for key in list(found) if key in RECIPE}
        return Pretraining(**found, recipe=recipe)
    return TABLES[name](**found)


def homes(key: str) -> list[str]:
    """The tables that have a field of this name."""
    return [name for name in TABLES if key in options(name)]


def elsewhere(key: str) -> str:
    """A hint at the tables that have a field of this name; empty where none has."""
    found = homes(key)
    return f"; it is in {' and '.join(f'[{name}]' for name in found)}" if found else ""


def checked(of: Option, value: Any, place: str, default: Any) -> Any:
    """A value of TOML as a run holds it. Raises: ValueError naming the place, what is found and what is wanted."""
    if value == AUTO and default == AUTO:
        return value
    try:
        return of.kind.read(value)
    except (ValueError, TypeError):
        wanted = f"{of.kind.wanted}, or auto" if default == AUTO else of.kind.wanted
        raise ValueError(f"{place} is {value!r}, wanted {wanted}") from None


def all_options() -> Iterator[tuple[str, str, Option]]:
    """Every option of every table, with the names of both."""
    for name in TABLES:
        yield from ((name, key, option) for key, option in options(name).items())
