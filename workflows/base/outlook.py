"""The outlook of a command: which stages are done, which would be made anew, and the values that differ."""

import os
from collections.abc import Iterator

from pipeline import storage
from workflows.base.stage import Stage, Step
from workflows.run.tables import TABLES
from workflows.run.values import options


def table(step: Step) -> str:
    """A line for each stage that a step needs: its folder, done or not, and why it would be made."""
    stages = [*step.upstream(), *([step] if isinstance(step, Stage) else [])]
    newest = storage.finished_stages(step.workdir)
    rows = [_row(stage, newest.get(stage.title, "")) for stage in stages]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return "\n".join(
        f"{name:<{widths[0]}}  {folder:<{widths[1]}}  {state:<{widths[2]}}  {why}".rstrip()
        for name, folder, state, why in rows
    )


def _row(stage: Stage, newest: str) -> tuple[str, str, str, str]:
    try:
        is_done = stage.complete()
        name = os.path.basename(stage.folder)
    except (ValueError, OSError) as error:
        return stage.title, "", "to make", str(error)
    if is_done:
        return stage.title, name, "done", ""
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
    now = stage.bytes_parameters()
    for name in {**before.parameters, **now}:
        if (new := now.get(name)) != (old := before.parameters.get(name)):
            yield f"{_full_name(name)} {_short(new)}, was {_short(old)}"
    anew = [type(each).__name__ for each in stage.requires().values() if not each.complete()]
    if anew:
        yield f"made from {', '.join(anew)}"


def _full_name(name: str) -> str:
    """A field with its table, where one table alone has it."""
    homes = [table for table in TABLES if name in options(table)]
    return f"{homes[0]}.{name}" if len(homes) == 1 else name


def _short(value: object) -> str:
    text = storage.canonical_json(value) if isinstance(value, dict | list) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
