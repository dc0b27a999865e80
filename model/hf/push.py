"""Sends a folder of transformers to the Hugging Face hub, its card completed: `python -m model.hf push DIR REPO`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from model.files import CONFIG, WEIGHTS
from model.hf.card import FROM_SCRATCH, head

CARD = "README.md"
BASE = "base_model"
REQUIRED = ("license", "language", "datasets", BASE, "pipeline_tag", "metrics")
LISTS = ("language", "datasets", "metrics", "tags")
FENCE = "---\n"


def push(
    folder: Path, repo: str, *, card: Iterable[str] = (), private: bool = False, dry_run: bool = False
) -> bool:
    """Send the files of a folder to the model `repo` in one commit; whether that was done.

    `card` are values of the card's head, as "license=apache-2.0", over those that it has; the folder itself stays as
    it is. Without a token of the hub, or with `dry_run`, what would be sent is printed, and what the head lacks. Raises
    ValueError for a folder that is no model, a name that is none, or a card that is sent without a value of REQUIRED;
    a model that was trained from scratch has no base model.
    """
    import huggingface_hub

    for name in (CONFIG, WEIGHTS, CARD):
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name}: no such file; give a folder that export wrote")
    check_name(repo)
    text, missing = completed((folder / CARD).read_text(encoding="utf-8"), parsed(card), folder / CARD)
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    is_known = huggingface_hub.get_token() is not None
    if dry_run or not is_known:
        show(repo, files, text, missing)
        print("nothing was sent" + ("" if is_known else "; log in with `hf auth login`, or set HF_TOKEN"))
        return False
    if missing:
        raise ValueError(f"{folder / CARD}: {lack_of(missing)}")
    operations = [
        huggingface_hub.CommitOperationAdd(path.name, text.encode() if path.name == CARD else str(path))
        for path in files
    ]
    try:
        api = huggingface_hub.HfApi()
        api.create_repo(repo, private=private or None, exist_ok=True)
        is_public = private and not api.model_info(repo).private
        if not is_public:
            api.create_commit(repo, operations, commit_message="LUKE with its tokenizer and card")
    except Exception as error:  # of the hub, or of the HTTP package that it uses
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{repo}: Hugging Face did not take it ({reason}); look at the name and at what your token may write, and "
            "run the command again"
        ) from None
    if is_public:
        raise ValueError(
            f"{repo}: is there already, and public; make it private first, or leave out --private"
        )
    print(f"{len(files)} files sent to https://huggingface.co/{repo}")
    return True


def check_name(repo: str) -> None:
    """Raise a ValueError for what is no OWNER/NAME."""
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError

    try:
        huggingface_hub.utils.validate_repo_id(repo)
    except HFValidationError as error:
        raise ValueError(f"{repo}: no name of a model at Hugging Face ({error}); wanted OWNER/NAME") from None
    if "/" not in repo:
        raise ValueError(f"{repo}: no name of a model at Hugging Face; wanted OWNER/NAME")


def show(repo: str, files: Iterable[Path], text: str, missing: Sequence[str]) -> None:
    """Print what would be sent: the files, the card's head, and what that lacks."""
    print(f"would be sent to {repo}:")
    for path in files:
        print(f"  {path.name}, {path.stat().st_size:,} bytes")
    print(text[: text.index(FENCE, len(FENCE)) + len(FENCE)], end="")
    if missing:
        print(f"it cannot be sent like this: {lack_of(missing)}")


def lack_of(missing: Sequence[str]) -> str:
    """What is missing in a card's head, and how to give it."""
    flags = " ".join(f"--card {name}=..." for name in missing)
    text = f"{', '.join(missing)} missing in its head; add {flags}"
    return f"{text}, or --card tags={FROM_SCRATCH} for a model without a base" if BASE in missing else text


def parsed(card: Iterable[str]) -> dict[str, Any]:
    """Values of a card's head from texts such as "language=de,en"."""
    values: dict[str, Any] = {}
    for text in card:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"--card {text}: wanted NAME=VALUE, as license=apache-2.0")
        values[name] = value.split(",") if name in LISTS else value
    return values


def completed(text: str, values: Mapping[str, Any], source: Path) -> tuple[str, list[str]]:
    """The text of a card with these values in its head, and the names of REQUIRED that are missing then."""
    from huggingface_hub import metadata_load
    from yaml import YAMLError

    end = text.find(FENCE, len(FENCE)) if text.startswith(FENCE) else -len(FENCE)
    try:
        found: dict[str, Any] = metadata_load(source) or {}
    except YAMLError as error:
        raise ValueError(f"{source}: its head is no YAML ({' '.join(str(error).split())})") from None
    if end == -1:
        raise ValueError(f"{source}: its head has no end; wanted a line of --- after it")
    body = text[end + len(FENCE) :]
    known = {**found, **values}
    tags = known.get("tags") or ()
    needless = (BASE,) if FROM_SCRATCH in ([tags] if isinstance(tags, str) else tags) else ()
    return head(known) + body, [name for name in REQUIRED if name not in needless and not known.get(name)]
