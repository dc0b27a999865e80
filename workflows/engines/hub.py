"""A model's folder, from disk or from Hugging Face."""

import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

_MODEL_FILES, _WEIGHTS, _OLD_WEIGHTS = (
    ("*.json", "merges.txt", "vocab.txt"),
    "*.safetensors",
    "pytorch_model.bin",
)


@functools.cache
def model_folder(name: str, parameter: str) -> str:
    """The local folder of a model: the folder itself, or a Hugging Face name's download.

    Args:
        name: a folder or a name, as the user gave it.
        parameter: the user's word for it, such as "--base-model".

    Raises:
        ValueError: there is no such model, or none of its weights can be read.
    """
    if os.path.isdir(name):
        return os.path.abspath(name)
    if name.startswith((".", "/", "~")) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise ValueError(
            f"{parameter} {name}: no such folder; give a model's folder or its name at Hugging Face"
        )
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = _download(name)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{parameter} {name}: no such folder, and not to be had from Hugging Face ({reason})"
        ) from None
    if not any(next(Path(folder).glob(weights), None) for weights in (_WEIGHTS, _OLD_WEIGHTS)):
        raise ValueError(
            f"{parameter} {name}: at Hugging Face it has neither {_WEIGHTS} nor {_OLD_WEIGHTS}; give a model with "
            "weights of PyTorch"
        )
    return folder


def _download(name: str) -> str:
    """A model's files by its name at Hugging Face; its weights in the old format only where there are no others.

    What was fetched tells which there are, and not a list of the files: the cache serves without a network, too.
    """
    from huggingface_hub import snapshot_download

    folder = snapshot_download(name, allow_patterns=[*_MODEL_FILES, _WEIGHTS])
    if not any(Path(folder).glob(_WEIGHTS)):
        folder = snapshot_download(name, allow_patterns=[*_MODEL_FILES, _OLD_WEIGHTS])
    return folder
