"""What is sent to the hub, and when nothing is; the hub itself is a fake that keeps what it is given."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest

from model.hf import main
from model.hf.card import model_card
from tests.model.hf.test_card import FIGURES, TRAINING
from tests.support.models import TINY


class Hub:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.repos: list[tuple[str, dict[str, Any]]] = []
        self.commits: list[tuple[str, dict[str, bytes]]] = []
        self.error: Exception | None = None
        self.is_private = True

    def create_repo(self, repo: str, **options: Any) -> None:
        if self.error:
            raise self.error
        self.repos.append((repo, options))

    def model_info(self, repo: str) -> SimpleNamespace:
        return SimpleNamespace(private=self.is_private)

    def create_commit(self, repo: str, operations: list[Any], *, commit_message: str) -> None:
        assert commit_message
        files = {}
        for operation in operations:
            with operation.as_file() as file:
                files[operation.path_in_repo] = file.read()
        self.commits.append((repo, files))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The hub, to which the user has a token."""
    hub = Hub()
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: hub)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_secret")
    return hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What an export leaves, and what is no part of it."""
    (tmp_path / "README.md").write_text(model_card(TINY, 1, FIGURES | TRAINING, lite=False), encoding="utf-8")
    for name in ("config.json", "model.safetensors", "vocab.json", ".hidden"):
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir()
    return tmp_path


def test_a_model_is_sent_whole_in_one_commit(
    folder: Path, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "README.md").read_text()
    options = ["--card", "license=cc-by-sa-4.0", "--card", "language=en,de", "--private"]
    assert main(["push", str(folder), "me/luke", *options]) == 0
    assert hub.repos == [("me/luke", {"private": True, "exist_ok": True})]
    ((repo, files),) = hub.commits
    assert repo == "me/luke"
    assert files.keys() == {"README.md", "config.json", "model.safetensors", "vocab.json"}
    assert files["model.safetensors"] == b"model.safetensors"
    assert (folder / "README.md").read_text() == before, "the folder stays as it was"
    (tmp_path / "sent.md").write_bytes(files["README.md"])
    head = huggingface_hub.metadata_load(tmp_path / "sent.md")
    wanted = {"license", "language", "datasets", "base_model", "pipeline_tag", "metrics", "model-index"}
    assert wanted <= head.keys()
    assert (head["license"], head["language"]) == ("cc-by-sa-4.0", ["en", "de"])
    assert files["README.md"].decode().endswith(before[before.index("\n# LUKE") :])
    assert capsys.readouterr().out == "4 files sent to https://huggingface.co/me/luke\n"


@pytest.mark.parametrize("has_token", [True, False])
def test_without_a_token_or_on_demand_nothing_is_sent(
    folder: Path,
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    has_token: bool,
) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_secret" if has_token else None)
    options = ["--dry-run"] if has_token else []
    assert main(["push", str(folder), "me/luke", *options]) == 0
    assert (
        "cannot be sent like this: license missing in its head; add --card license=..."
        in capsys.readouterr().out
    )
    options += ["--card", "license=mit"]
    assert main(["push", str(folder), "me/luke", *options]) == 0
    assert hub.repos == hub.commits == []
    text = capsys.readouterr().out
    assert text.startswith("would be sent to me/luke:\n  README.md, ")
    assert 'license: "mit"\n---\nnothing was sent' in text, "nothing is missing"
    assert ("log in with `hf auth login`, or set HF_TOKEN" in text) != has_token
    assert ".hidden" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}", "me/luke"], "README.md: license missing in its head; add --card license=..."),
        (
            ["{folder}", "luke", "--card", "license=mit"],
            "luke: no name of a model at Hugging Face; wanted OWNER/NAME",
        ),
        (["{folder}", "a/b/c", "--card", "license=mit"], "a/b/c: no name of a model at Hugging Face"),
        (["{folder}", "me/luke", "--card", "mit"], "--card mit: wanted NAME=VALUE, as license=apache-2.0"),
        (["{folder}/folder", "me/luke"], "folder/config.json: no such file; give a folder that export wrote"),
    ],
)
def test_what_cannot_be_sent_is_refused(
    folder: Path, hub: Hub, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["push", *(argument.format(folder=folder) for argument in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert hub.repos == []


def test_a_card_of_the_user_s_is_completed(
    folder: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one without a head."""
    (folder / "README.md").write_text("# Mine\n")
    values = ["license=mit", "language=en", "datasets=a,b", "pipeline_tag=fill-mask", "metrics=accuracy"]
    given = [f"--card={value}" for value in values]
    assert main(["push", str(folder), "me/luke", *given]) == 2, "nothing says that it has no base model"
    lack = (
        "base_model missing in its head; add --card base_model=..., or --card tags=from-scratch for a model"
    )
    assert lack in capsys.readouterr().err
    assert main(["push", str(folder), "me/luke", *given, "--card=tags=from-scratch"]) == 0
    assert hub.commits[0][1]["README.md"].decode() == (
        '---\nlicense: "mit"\nlanguage: ["en"]\ndatasets: ["a", "b"]\npipeline_tag: "fill-mask"\n'
        'metrics: ["accuracy"]\ntags: ["from-scratch"]\n---\n# Mine\n'
    )


def test_what_the_hub_says_is_one_line(folder: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    hub.error = ConnectionError("no\nnetwork")
    assert main(["push", str(folder), "me/luke", "--card", "license=mit"]) == 2
    assert capsys.readouterr().err == (
        "me/luke: Hugging Face did not take it (no network); look at the name and at what your token may write, and "
        "run the command again\n"
    )


def test_what_shall_be_private_is_not_sent_to_a_public_model(
    folder: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.is_private = False
    assert main(["push", str(folder), "me/luke", "--card", "license=mit", "--private"]) == 2
    assert "me/luke: is there already, and public" in capsys.readouterr().err
    assert hub.commits == []
    assert main(["push", str(folder), "me/luke", "--card", "license=mit"]) == 0
    assert hub.repos[-1] == ("me/luke", {"private": None, "exist_ok": True}), "the owner's own default"


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ("---\nlicense: [mit\n---\n# Mine\n", "README.md: its head is no YAML"),
        ("---\nlicense: mit\n# Mine\n", "README.md: its head has no end; wanted a line of ---"),
    ],
)
def test_a_card_with_a_broken_head_is_refused(
    folder: Path, hub: Hub, card: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "README.md").write_text(card)
    assert main(["push", str(folder), "me/luke", "--card", "license=mit"]) == 2
    assert message in capsys.readouterr().err
    assert hub.repos == []
