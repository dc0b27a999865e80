"""Options that several commands of linking share, and the linker that they describe."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.lookup.annotator import MIN_LINK_PROBABILITY
from tasks.io.arguments import positive, share
from tasks.linking.candidates import MOST
from tasks.linking.open import TOKENS_PER_BATCH, LinkerSettings
from tasks.serving.plain_text import NO_LANGUAGE
from tasks.serving.streams import AT_ONCE

TOKENS_PER_DOCUMENT = 128  # a guess, by which documents are taken together: answers wait for all of these


def add_table(command: argparse.ArgumentParser, *, required: bool) -> None:
    """The mention table, and how many candidates it gives."""
    command.add_argument(
        "--mentions",
        type=Path,
        required=required,
        help="folder of BuildMentionTable"
        + ("" if required else ": titles go through its redirects, and candidates are counted"),
    )
    command.add_argument(
        "--most-candidates",
        type=positive,
        default=MOST,
        metavar="N",
        help="how many pages a mention can stand for: the commonest ones (default: %(default)s)",
    )


def add_document_errors(command: argparse.ArgumentParser) -> None:
    """Add the treatment of wrong documents."""
    command.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="a mention with a wrong place or title, or a line that is no document: stop there, or leave out the "
        "mention or the document, and say so on stderr (default: %(default)s)",
    )


def add_method(command: argparse.ArgumentParser) -> None:
    """The parts of the linker."""
    add_table(command, required=True)
    command.add_argument(
        "--model",
        type=Path,
        help="folder of Pretrain or ExportHuggingFace, or a LukeForMaskedLM of transformers with entity_vocab.json; "
        "without one the commonest candidate is the answer",
    )
    command.add_argument(
        "--contexts",
        type=Path,
        help="folder of BuildContexts: the words and other mentions of the document count beside the prior",
    )
    command.add_argument(
        "--tokenizer", type=Path, help="the model's tokenizer, where its folder has none (Pretrain)"
    )
    command.add_argument(
        "--global",
        dest="is_global",
        action="store_true",
        help="the model answers one mention after the other, the surest first, and reads the pages that it has chosen: "
        "slower (default: all mentions at once)",
    )
    command.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    command.add_argument(
        "--tokens-per-batch",
        type=positive,
        default=TOKENS_PER_BATCH,
        help="words and entities computed at once (default: %(default)s)",
    )


def add_recognition(command: argparse.ArgumentParser) -> None:
    """Add a model that finds mentions in place of the table's names."""
    command.add_argument(
        "--ner",
        type=Path,
        metavar="DIR",
        help="folder of a fine-tuned model of ner, which finds the mentions in place of the table's names",
    )
    command.add_argument(
        "--language",
        help="the wiki's code of the texts' language, by which --ner finds sentences (general rules: one that is not "
        f"known; {NO_LANGUAGE}: a line is one; default: that of the table)",
    )


def add_certainty(command: argparse.ArgumentParser) -> None:
    """Add how sure a link has to be."""
    command.add_argument(
        "--min-link-probability",
        type=share,
        default=MIN_LINK_PROBABILITY,
        metavar="SHARE",
        help="names that are links less often are not found (default: %(default)s)",
    )
    command.add_argument(
        "--min-probability",
        type=share,
        metavar="SHARE",
        help="mentions whose page is less probable are given none. Of a name that was found, probability times "
        "link_probability counts; of one that --ner found, times label_probability (default: 0; of mentions that "
        "documents bring, that of the calibration)",
    )
    command.add_argument(
        "--calibration",
        type=Path,
        help="what calibrate wrote for this table, model, contexts and way of linking",
    )


def settings_of(options: argparse.Namespace) -> LinkerSettings:
    """Return what the options of `add_method` say, and those of the other functions where a command has them."""
    names = ("contexts", "model", "tokenizer", "calibration", "ner", "language")
    parts = {name: str(getattr(options, name, None) or "") for name in names}
    return LinkerSettings(
        mentions=str(options.mentions),
        **parts,
        most_candidates=options.most_candidates,
        min_link_probability=getattr(options, "min_link_probability", MIN_LINK_PROBABILITY),
        min_probability=getattr(options, "min_probability", None) if "calibration" in options else None,
        is_global=options.is_global,
        finds_all=getattr(options, "find_mentions", False),
        shows_candidates=getattr(options, "candidates", False),
        device=options.device,
        tokens_per_batch=options.tokens_per_batch,
    )


def documents_at_once(options: argparse.Namespace) -> int:
    """Return how many documents are answered together."""
    computes = options.model or getattr(options, "ner", None)
    return max(1, options.tokens_per_batch // TOKENS_PER_DOCUMENT) if computes else AT_ONCE


def report_skipped(lines: Sequence[str]) -> None:
    """Say on stderr what is left out."""
    for each in lines:
        print(f"left out: {each}", file=sys.stderr)
