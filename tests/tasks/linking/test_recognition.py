"""Linking of mentions that a fine-tuned model of entity recognition finds: `python -m tasks.linking link --ner`."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
pytest.importorskip("fastapi", reason="the service is made of it")
pytest.importorskip("httpx", reason="the service is asked with it")

from starlette.testclient import TestClient

from tasks.linking.__main__ import parser
from tasks.linking.open import open_linker
from tasks.linking.options import settings_of
from tasks.linking.recognition import Recognizer
from tasks.linking.service.requests import Limits
from tasks.linking.service.service import make_app
from tasks.serving.plain_text import question
from tasks.serving.predict import Predictor, load
from tests.support.asked import Linking

TEXTS = ["Ann met Bob. Bob was born in Kentucky.", "Mr. Lincoln moved to Illinois! Ann did not."]


Link = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def link(run: Linking, table: Path) -> Link:
    """Runs `link` with the table: the lines of stdout."""

    def link(*arguments: object, data: str = "\n".join(TEXTS)) -> list[dict[str, Any]]:
        lines, _, status = run("link", "--mentions", table, "--device=cpu", *arguments, data=data.encode())
        assert status == 0
        return lines

    return link


@pytest.mark.parametrize("language", ["en", "none"])
def test_the_models_entities_are_linked_as_if_they_were_given(link: Link, folder: Path, language: str) -> None:
    """Also without --language, which is that of the table: English. Without rules a line is a sentence."""
    entities = load(folder / "ner-luke", device="cpu").answer([question("", text, language) for text in TEXTS])
    assert all(each["entities"] for each in entities)
    given = [
        json.dumps({"text": text, "mentions": each["entities"]}) for text, each in zip(TEXTS, entities, strict=True)
    ]
    linked = [line["mentions"] for line in link(data="\n".join(given))]
    assert {"A", None} <= {each["title"] for line in linked for each in line}
    wanted = [
        [
            {**mention, "label": each["label"], "label_probability": each["probability"]}
            | {"confidence": sure and pytest.approx(sure * each["probability"], abs=1e-5)}
            for mention, each in zip(mentions, of["entities"], strict=True)
            for sure in [mention["probability"]]
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


def test_the_service_finds_them_too(link: Link, folder: Path, table: Path) -> None:
    arguments = ["--mentions", str(table), "--ner", str(folder / "ner-luke"), "--device=cpu"]
    linker = open_linker(settings_of(parser().parse_args(["serve", *arguments])))
    with TestClient(make_app(linker, Limits())) as client:
        documents = client.post("/link", json={"documents": [{"text": text} for text in TEXTS]}).json()
        assert client.get("/health").json()["ner"] is True
    assert [each["mentions"] for each in documents["documents"]] == [
        line["mentions"] for line in link("--ner", folder / "ner-luke")
    ]


def test_two_threads_have_their_turns() -> None:
    """A tokenizer forgets long words while it works."""
    inside, most = [0], list[int]()

    class Slow:
        def answer(self, questions: list[Any]) -> list[dict[str, Any]]:
            inside[0] += 1
            most.append(inside[0])
            time.sleep(0.02)
            inside[0] -= 1
            return [{"entities": []} for _ in questions]

    recognizer = Recognizer(cast(Predictor, Slow()), "none")
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(recognizer, [["Ann"]] * 8)] == [[[]]] * 8
    assert most == [1] * 8
