"""Models by their names at Hugging Face: the revision that a name means, its files, and fetching them.

When a command is checked, the revision and the names of its files are asked for. Files are fetched by those who
read them, of that revision, and no more of them than are read.
"""

import contextlib
import functools
import os
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

_NAME = re.compile(r"(\w[\w.-]*(?:/[\w.-]+)?)(?:@([\w./-]+))?")
_TIMEOUT_SECONDS = 10
_MODEL_FILES = ("*.json", "merges.txt", "vocab.txt")
_WEIGHTS, _OLD_WEIGHTS = "*.safetensors", "pytorch_model.bin"


@dataclass(frozen=True)
class HubModel:
    """A model at Hugging Face."""

    asked: str  # how the user named it, for errors
    repository: str  # its name there
    revision: str  # the hash of the commit
    files: frozenset[str]  # their names; where Hugging Face does not answer, of those in the cache
    place: str  # where these are, for errors

    @property
    def identity(self) -> str:
        """The identity of its content."""
        return f"{self.repository}@{self.revision}"


@functools.cache
def find_model(name: str, parameter: str = "model") -> HubModel:
    """The revision that a name means, found once a run; nothing is fetched.

    Where Hugging Face does not answer it is the one that was fetched last. NAME@REVISION is that revision, NAME alone
    the newest. `parameter` is the user's word for it, such as "--base-model".

    Raises: ValueError: there is no such model.
    """
    asked = f"{parameter} {name}"
    match = _NAME.fullmatch(name)
    if not match:
        raise ValueError(f"{asked}: no such folder; give a model's folder or its name at Hugging Face")
    import huggingface_hub as hub

    repository, wanted = match.groups()
    with _errors_in_a_line(asked):
        try:
            found = hub.HfApi().model_info(repository, revision=wanted, timeout=_TIMEOUT_SECONDS)
        except Exception:
            if cached := _find_in_cache(asked, repository, wanted):
                return cached
            raise
        files = frozenset(file.rfilename for file in found.siblings or ())
        return HubModel(asked, repository, str(found.sha), files, "at Hugging Face")


def _find_in_cache(asked: str, repository: str, wanted: str | None) -> HubModel | None:
    import huggingface_hub as hub
    from huggingface_hub import constants

    with contextlib.suppress(hub.CacheNotFound):
        fetched = [
            revision
            for repo in hub.scan_cache_dir(constants.HF_HUB_CACHE).repos
            if (repo.repo_id, repo.repo_type) == (repository, "model")
            for revision in repo.revisions
            if wanted in (None, revision.commit_hash, *revision.refs)
        ]
        if last := max(fetched, key=lambda revision: revision.last_modified, default=None):
            files = frozenset(file.file_path.relative_to(last.snapshot_path).as_posix() for file in last.files)
            place = "in the cache of Hugging Face, which itself does not answer"
            return HubModel(asked, repository, last.commit_hash, files, place)
    return None


@contextlib.contextmanager
def _errors_in_a_line(asked: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # of Hugging Face's package and of the HTTP package that it uses
        reason = textwrap.shorten(str(error) or type(error).__name__, 200)
        raise ValueError(f"{asked}: no such folder, and not to be had from Hugging Face ({reason})") from None


def check_weights(name: str, parameter: str) -> None:
    """Check that a model by name has weights that can be read; a folder is not looked into.

    Raises: ValueError: it has none.
    """
    if not os.path.isdir(name):
        _weights_of(find_model(name, parameter))


def _weights_of(model: HubModel) -> str:
    """The pattern of the files with the weights: the old format only where there is no other."""
    for pattern in (_WEIGHTS, _OLD_WEIGHTS):
        if any(fnmatch(file, pattern) for file in model.files):
            return pattern
    raise ValueError(
        f"{model.asked}: found neither {_WEIGHTS} nor {_OLD_WEIGHTS} {model.place}; give a model with weights "
        "of PyTorch"
    )


def model_folder(name: str, parameter: str = "model") -> str:
    """The local folder of a model: the folder itself, or what is fetched by its name.

    Raises: ValueError: there is no such model, or none of its weights can be read.
    """
    if os.path.isdir(name):
        return name
    model = find_model(name, parameter)
    return fetch(model, [*_MODEL_FILES, _weights_of(model)])


def fetch(model: HubModel, files: Iterable[str]) -> str:
    """The local folder of these files of a model, names or patterns. Raises: ValueError: they are not to be had."""
    import huggingface_hub as hub

    with _errors_in_a_line(model.asked):
        return hub.snapshot_download(model.repository, revision=model.revision, allow_patterns=[*files])
