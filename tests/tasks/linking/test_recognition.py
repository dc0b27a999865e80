"""Linking of mentions that a fine-tuned model of entity recognition finds: `python -m tasks.linking link --ner`."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
pytest.importorskip("fastapi", reason="the service is made of it")
pytest.importorskip("httpx", reason="the service is asked with it")

from starlette.testclient import TestClient

from tasks.linking.__main__ import main, parser
from tasks.linking.commands.options import settings_of
from tasks.linking.open import open_linker
from tasks.linking.service.service import Limits, make_app
from tasks.serving.plain_text import question
from tasks.serving.predict import load
from tests.support.fine_tuned import fine_tuned
from tests.support.mentions import ARTICLES, small_pages, write_mentions

TEXTS = ["Ann met Bob. Bob was born in Kentucky.", "Mr. Lincoln moved to Illinois! Ann did not."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of two tasks, and a mention table (`mentions`)."""
    folder = fine_tuned(tmp_path_factory.mktemp("models"), ("ner", "entity_typing"))
    (folder / "mentions").mkdir()
    write_mentions(folder / "mentions", small_pages(ARTICLES), size=4)
    return folder


class Link:
    """Runs `link` in this process, with the table."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys

    def __call__(self, *arguments: object, data: str = "\n".join(TEXTS)) -> list[dict[str, Any]]:
        """The lines of stdout."""
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.encode())))
        main(["link", "--mentions", str(self.folder / "mentions"), "--device=cpu", *map(str, arguments)])
        return [json.loads(line) for line in self.capsys.readouterr().out.splitlines()]


@pytest.fixture
def link(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Link:
    return Link(folder, monkeypatch, capsys)


@pytest.mark.parametrize("language", ["en", "none"])
def test_the_models_entities_are_linked_as_if_they_were_given(
    link: Link, folder: Path, language: str
) -> None:
    """Also without --language, which is that of the table: English. Without rules a line is a sentence."""
    entities = load(folder / "ner-luke", device="cpu").answer(
        [question("", text, language) for text in TEXTS]
    )
    assert all(each["entities"] for each in entities)
    given = [
        json.dumps({"text": text, "mentions": each["entities"]})
        for text, each in zip(TEXTS, entities, strict=True)
    ]
    linked = [line["mentions"] for line in link(data="\n".join(given))]
    assert {"A", None} <= {each["title"] for line in linked for each in line}
    wanted = [
        [
            {**mention, "label": each["label"], "label_probability": each["probability"]}
            for mention, each in zip(mentions, of["entities"], strict=True)
        ]
        for mentions, of in zip(linked, entities, strict=True)
    ]
    options = [] if language == "en" else ["--language", language]
    found = [line["mentions"] for line in link("--ner", folder / "ner-luke", *options)]
    assert found == wanted
    other = "none" if language == "en" else "en"
    assert found != [line["mentions"] for line in link("--ner", folder / "ner-luke", "--language", other)]


def test_mentions_that_are_given_stay(link: Link, folder: Path) -> None:
    [found] = link("--ner", folder / "ner-luke", data=TEXTS[0])
    data = json.dumps({"text": TEXTS[0], "mentions": [{"start": 0, "end": 3}]})
    [given] = link("--ner", folder / "ner-luke", data=data)
    [mention] = given["mentions"]
    assert (mention["title"], "label" in mention) == ("A", False)
    [again] = link("--ner", folder / "ner-luke", "--find-mentions", data=data)
    assert again["mentions"] == found["mentions"]


def test_a_threshold_counts_the_page_and_the_entity(link: Link, folder: Path) -> None:
    """Between the two values of a mention it has its page; above its product it has none."""
    [found] = link("--ner", folder / "ner-luke", data=TEXTS[0])
    [*linked] = [each for each in found["mentions"] if each["title"]]
    assert linked
    for mention in linked:
        product = mention["probability"] * mention["label_probability"]
        for share, title in ((product - 1e-6, mention["title"]), (product + 1e-6, None)):
            [line] = link("--ner", folder / "ner-luke", "--min-probability", share, data=TEXTS[0])
            [same] = [each for each in line["mentions"] if each["start"] == mention["start"]]
            assert same["title"] == title


def test_the_service_finds_them_too(link: Link, folder: Path) -> None:
    arguments = ["--mentions", str(folder / "mentions"), "--ner", str(folder / "ner-luke"), "--device=cpu"]
    linker = open_linker(settings_of(parser().parse_args(["serve", *arguments])))
    with TestClient(make_app(linker, Limits())) as client:
        documents = client.post("/link", json={"documents": [{"text": text} for text in TEXTS]}).json()
        assert client.get("/health").json()["ner"] is True
    assert [each["mentions"] for each in documents["documents"]] == [
        line["mentions"] for line in link("--ner", folder / "ner-luke")
    ]
