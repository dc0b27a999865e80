"""The outlook of a command: which stages are done, which would be made anew, and the values that differ."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline import storage
from pipeline.look import aligned
from workflows.base.stage import Stage, Step
from workflows.run.kinds import AUTO
from workflows.run.options import homes

DONE = "done"
_MOST_CHARACTERS = 80  # of two values in a line
Row = tuple[str, str, str, str]  # stage, folder, state, why


def table(step: Step) -> str:
    """A line for each stage that a step needs: its folder, done or not, and why it would be made."""
    rows = _rows(step)
    return "\n".join(aligned(rows)) if rows else f"{step.title} makes nothing"


def to_make(step: Step) -> str:
    """The lines of those stages that would be made."""
    rows = [row for row in _rows(step) if row[2] != DONE]
    if not rows:
        return f"{step.title}: all is done"
    return f"{step.title} would make:\n" + "\n".join(aligned(rows))


def _rows(step: Step) -> list[Row]:
    newest = storage.finished_stages(step.workdir)
    return [_row(stage, newest.get(stage.title, "")) for stage in stages_of(step)]


def stages_of(step: Step) -> list[Stage]:
    """The stages that a step needs, with their parts, each behind those that it requires; itself, if it is one."""
    stages = (stage for stage in (*step.upstream(), step) if isinstance(stage, Stage))
    return [part for stage in stages for part in (*stage.parts(), stage)]


def _row(stage: Stage, newest: str) -> Row:
    try:
        is_done = stage.complete()
        name = os.path.basename(stage.folder)
    except (ValueError, OSError) as error:
        return stage.title, "", "to make", str(error)
    if is_done:
        return stage.title, name, DONE, ""
    return stage.title, name, "to make", "; ".join(reasons(stage, newest))


def reasons(stage: Stage, newest: str) -> Iterator[str]:
    """The differences between a stage and the newest finished folder of its name."""
    if not newest:
        return
    if newest == os.path.basename(stage.folder):
        yield "its files or its inputs have changed"
        return
    try:
        before = storage.read_manifest(storage.join(stage.workdir, newest))
    except ValueError as error:
        yield str(error)
        return
    if before.version != stage.VERSION:
        yield f"version {stage.VERSION}, was {before.version}"
    if not stage.parts():  # whose differences are listed beside them
        yield from _differences("", before.parameters, stage.bytes_parameters())
    anew = [each.title for each in (*stage.requires().values(), *stage.parts()) if not each.complete()]
    if anew:
        yield f"made from {', '.join(anew)}"


def _differences(within: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The values that differ, those of tables one by one; a field with its table, where one table alone has it."""
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences("pretraining." if name == "recipe" else f"{name}.", old, new)
        elif new != old:
            found = [] if within else homes(name)
            full = f"{found[0]}.{name}" if len(found) == 1 else f"{within}{name}"
            values = f"{_text(new)}, was {_text(old)}"
            yield f"{full} {values}" if len(values) <= _MOST_CHARACTERS else f"{full} differs"


def _text(value: object) -> str:
    """A value in a line; an identity leaves out what is open."""
    if value is None:
        return AUTO
    return storage.files.canonical_json(value) if isinstance(value, dict | list) else str(value)
