"""The console script `luke`: every command of the project by one name.

luke run STAGE [flags]    run a stage and all that it needs: luigi --module workflows STAGE [flags]
luke look WORKDIR         the stages of a work directory, or an artefact as text: python -m pipeline.look
luke watch WORKDIR        how far the run in a work directory is, until it ends: python -m workflows.planning.watch
luke report WORKDIR ...   where a report lies; of several work directories their figures side by side
luke link, luke serve     link texts: python -m tasks.linking link, serve
luke predict              ask a fine-tuned model: python -m tasks.predict
luke score                compare answers with gold ones: python -m tasks.score
luke export               write a fine-tuned model for transformers: python -m tasks.export
luke evaluate             the held-out figures of a pretrained model: python -m model.evaluation
"""

import importlib
import sys
from collections.abc import Sequence

from workflows.run.kinds import similar

# The module of a command, and the words that come before the user's.
COMMANDS = {
    "look": ("pipeline.look",),
    "watch": ("workflows.planning.watch",),
    "report": ("workflows.report.several",),
    "link": ("tasks.linking.__main__", "link"),
    "serve": ("tasks.linking.__main__", "serve"),
    "predict": ("tasks.predict",),
    "score": ("tasks.score",),
    "export": ("tasks.export",),
    "evaluate": ("model.evaluation",),
}


def main() -> int:
    """Run the command that the first word names; gives its exit status."""
    command, words = next(iter(sys.argv[1:]), "--help"), sys.argv[2:]
    if command == "run":
        return run(words)
    if command in COMMANDS:
        module, *before = COMMANDS[command]
        if command == "look" and words and (found := outlook_of(words)) is not None:
            return found
        return int(importlib.import_module(module).main([*before, *words]) or 0)
    is_help = command in ("-h", "--help")
    hint = similar(command, ("run", *COMMANDS))
    said = __doc__ if is_help else f"luke {command}: no such command{hint}\n\n{__doc__}"
    print(said, file=sys.stdout if is_help else sys.stderr)
    return 0 if is_help else 2


def run(words: Sequence[str]) -> int:
    """Run a stage as the command `luigi` does."""
    from luigi.cmdline import luigi_run

    from workflows.base import commandline

    importlib.import_module("workflows")
    arguments = ["--module", "workflows", *words]
    commandline.prepare(arguments)
    luigi_run(arguments)
    return 0


def outlook_of(words: Sequence[str]) -> int | None:
    """Show a work directory and what RunAll would make in it, or its sequences as words; None for anything else."""
    from pipeline import look

    workdir, *more = words
    if not look.is_workdir(workdir) or more not in ([], ["--sequences"]):
        return None
    from workflows import BuildSequences, RunAll
    from workflows.base import outlook
    from workflows.run.file import Run

    try:
        settings = Run.read(workdir)
        if more:
            return look.main([workdir, "--tokenizer", BuildSequences(settings=settings).tokenizer_folder()])
        status = look.main([workdir])
        print("\n" + outlook.to_make(RunAll(settings=settings)))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
