"""Arguments that the command lines of the tasks share."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class OneFolder(argparse.Action):
    """One folder. A pattern such as `work/mentions-*` may stand for several, which are an error that names them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "nargs": "+", "type": Path})

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        folders = list(values or ())
        if len(folders) > 1:
            parser.error(
                f"{option_string or self.metavar}: wanted one folder, found {', '.join(map(str, folders))}"
            )
        setattr(namespace, self.dest, folders[0])
