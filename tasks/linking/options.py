"""Options that several commands of linking share, and the linker that they describe."""

import argparse
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from pipeline.lookup.annotator import MIN_LINK_PROBABILITY
from pipeline.storage import finished_stages, read_manifest
from tasks.linking.candidates import MOST
from tasks.linking.formats.formats import FORMATS
from tasks.linking.linker import Linker
from tasks.linking.open import CALIBRATION, TOKENS_PER_BATCH, LinkerSettings, calibration_of, open_linker, parts_of
from tasks.serving.streams import AT_ONCE

# What a work directory has of a linker: the stage, and the place in its folder. Calibrations are of all parts together,
# and a model is of all wikis.
PARTS = {
    "mentions": ("BuildMentionTable", ""),
    "contexts": ("BuildContexts", ""),
    "model": ("ExportHuggingFace", "model"),
    CALIBRATION: ("EvaluateLinking", CALIBRATION),
}
_TABLE = re.compile(r"BuildMentionTable( |\Z)")
# The parts of options.toml that describe a linker: its own, and those of one that also finds mentions and drops links.
METHOD = ("mentions", "whole", "method")
LINKS = (*METHOD, "links")
DEFAULTS = {"most_candidates": MOST, "tokens_per_batch": TOKENS_PER_BATCH, "min_link_probability": MIN_LINK_PROBABILITY}
AUTO = "auto"
TOKENS_PER_DOCUMENT = 128  # a guess, by which documents are taken together: answers wait for all of these


def complete(options: argparse.Namespace, *, wants_table: bool = True) -> None:
    """Take from the linker's folder or the work directory what the options do not name, and say so.

    Raises: ValueError where there is no mention table, and one is wanted.
    """
    options.linker = getattr(options, "folder", None) or options.linker  # which serve takes alone, too
    language = options.language
    if not getattr(options, "ner", None):  # which may ask for its sentences alone
        options.language = None
        if language and not options.workdir:
            raise ValueError("--language: chooses among the wikis of --workdir DIR, or cuts sentences for --ner DIR")
    if not (options.linker or options.workdir):
        if wants_table and not options.mentions:
            raise ValueError("--mentions: wanted a folder of BuildMentionTable, or --linker DIR, or --workdir DIR")
        return
    places = parts_of(Path(options.linker)) if options.linker else parts_in_workdir(options.workdir, language)
    calibrations = places.pop(CALIBRATION, None)
    if getattr(options, "model", None):
        places.pop("tokenizer", None)  # which is the other model's
    taken = {name: path for name, path in places.items() if getattr(options, name, path) is None}
    # A calibration is for all parts together, and for the default's candidates.
    is_whole = "model" in taken and taken.keys() == places.keys() and options.most_candidates == MOST
    if calibrations and is_whole and getattr(options, "calibration", calibrations) is None:
        found = calibration_of(calibrations, is_global=options.is_global)
        taken |= {"calibration": found} if found else {}
    for name, path in taken.items():
        setattr(options, name, path)
    if not options.mentions:
        whole = options.linker or options.workdir
        raise ValueError(f"{whole}: no mention table there; run BuildMentionTable first")
    print("; ".join(f"{name}: {path}" for name, path in taken.items()), file=sys.stderr)


def parts_in_workdir(workdir: str, language: str | None = None) -> dict[str, Path]:
    """Return the parts of a linker that a work directory has, by the names of `LinkerSettings`.

    Of several wikis, the parts are those of the one of this language; without a language, or for one of --ner alone,
    those of the first. Raises: ValueError: there are several, and none of this language.
    """
    finished, wikis = finished_stages(workdir), languages_in_workdir(workdir)
    if language and len(wikis) > 1 and language not in wikis:
        raise ValueError(f"--language {language}: the wikis of {workdir} are of {', '.join(wikis)}")
    wiki = wikis.get(language or "", "")
    stages = {name: (stage if name == "model" else f"{stage} {wiki}".strip()) for name, (stage, _) in PARTS.items()}
    found = {
        name: Path(workdir, finished[stage], PARTS[name][1]) for name, stage in stages.items() if stage in finished
    }
    return {name: path for name, path in found.items() if path.exists()}


def languages_in_workdir(workdir: str) -> dict[str, str]:
    """Return the languages of the mention tables of a work directory, each with what stands behind names of stages."""
    tables = {name: Path(workdir, path) for name, path in finished_stages(workdir).items() if _TABLE.match(name)}
    there = sorted((name for name, path in tables.items() if path.is_dir()), key=lambda name: (len(name), name))
    return {read_manifest(str(tables[name])).facts["language"]: name.partition(" ")[2] for name in there}


def settings_of(options: argparse.Namespace) -> LinkerSettings:
    """Return what the options of METHOD say, and those of LINKS where a command has them."""
    complete(options)
    given = {field.name: getattr(options, field.name, None) for field in fields(LinkerSettings)}
    values: dict[str, Any] = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    return LinkerSettings(**{name: value for name, value in values.items() if value is not None})


def open_linkers(options: argparse.Namespace) -> dict[str, Linker]:
    """Return the linker of these options, under an empty name; or one for each wiki of the work directory, by language.

    Raises: ValueError: there is no work directory, or the format is of one wiki.
    """
    if options.language != AUTO:
        return {"": open_linker(settings_of(options))}
    if not options.workdir:
        raise ValueError(f"--language {AUTO}: chooses among the wikis of --workdir DIR; give it")
    if options.format != FORMATS[0]:
        raise ValueError(f"--format {options.format}: is of one wiki; give one --language, or take JSON lines")
    codes = languages_in_workdir(options.workdir)
    of_codes = {code: argparse.Namespace(**{**vars(options), "language": code}) for code in codes}
    return {code: open_linker(settings_of(each)) for code, each in of_codes.items()}


def documents_at_once(linker: Linker, tokens_per_batch: int) -> int:
    """Return how many documents are answered together."""
    return max(1, tokens_per_batch // TOKENS_PER_DOCUMENT) if linker.model or linker.recognize else AT_ONCE
