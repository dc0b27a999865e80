"""The service through its real application, and once as a process on a port of its own."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
pytest.importorskip("fastapi", reason="the service is made of it")
pytest.importorskip("uvicorn", reason="the service runs in it")
pytest.importorskip("httpx", reason="the service is asked with it")

from starlette.testclient import TestClient

from tasks.io.records import Record
from tasks.linking.linker import Linker
from tasks.linking.service import requests, service
from tasks.linking.service.requests import Limits
from tasks.linking.service.service import make_app
from tests.support import ROOT
from tests.support.asked import Linking
from tests.support.mentions import DUMP

LIMITS = Limits(bytes=2000, documents=3, mentions=4, requests=2)
TEXT = "Ann met Bob."


@pytest.fixture(scope="module")
def client(linker: Linker) -> Iterator[TestClient]:
    with TestClient(make_app(linker, LIMITS), raise_server_exceptions=False) as client:
        yield client


def titles(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["mention"], each["title"]) for each in document["mentions"]]


def test_documents_are_linked(client: TestClient, linker: Linker) -> None:
    """As the command does it: what a document has beside stays."""
    given = {"text": TEXT, "mentions": [{"start": 8, "end": 11}], "more": 1}
    answer = client.post("/link", json={"documents": [{"id": "é", "text": TEXT}, given]})
    assert answer.status_code == 200
    first, second = answer.json()["documents"]
    assert (first["id"], first["text"], titles(first)) == ("é", TEXT, [("Ann", "A"), ("Bob", "B")])
    assert (second["more"], titles(second)) == (1, [("Bob", "B")])
    assert second["mentions"] == [{**first["mentions"][1], "confidence": 1.0, "link_probability": None}]
    assert "candidates" not in first["mentions"][0]


def test_health_names_the_table(client: TestClient, linker: Linker) -> None:
    assert client.get("/health").json() == {
        "status": "ok", "language": "en", "dump": [DUMP], "names": len(linker.finder.table), "model": False,
        "contexts": False, "ner": False, "wiki": None, "min_probability": 0.0, "piece_bytes": 128, "waiting": 0,
        "busy_seconds": 0.0,
    }  # fmt: skip
    assert client.head("/health").status_code == 200


DOCUMENTS = "request: documents"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "request: not JSON (Expecting property name enclosed in double quotes, column 2)"),
        (b'{"documents": []}\xff', 400, "request: byte 17 is not UTF-8; send JSON in UTF-8"),
        (b"[" * 1500, 400, "request: nested too deep; wanted a JSON object of texts, numbers and lists"),
        (b'{"documents": [], "top": 1}', 400, "request: unknown field 'top'; wanted documents and candidates"),
        (b'{"documents": [{"text": "a"}, {"text": 3}]}', 400, f"{DOCUMENTS}[1]: text is 3; wanted a text"),
        (
            b'{"documents": [{"text": "Ann", "mentions": [{"start": 2, "end": 9}]}]}',
            400,
            f"{DOCUMENTS}[0]: mentions[0]: start, end spans 2 to 9; wanted a start below the end, "
            "within 0 to 3 characters",
        ),
        (
            b'{"documents": [{"text": "\\ud83d"}]}',
            400,
            "request: \\ud83d is half of a surrogate pair, in documents[0].text; write both or leave it out",
        ),
        (b'{"documents": [{}, {}, {}, {}]}', 413, "request: 4 documents; wanted 3 at most"),
        (
            b'{"documents": [{"text": "Ann"}, {"text": "Ann", "mentions": [{"start": 0, "end": 3}, '
            b'{"start": 0, "end": 2}, {"start": 0, "end": 3}]}]}',
            400,
            f"{DOCUMENTS}[1]: mentions: has a span twice; wanted each once",
        ),
        (
            json.dumps({"documents": [{"text": "Anna", "mentions": [
                {"start": start, "end": end} for start, end in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]]}]}).encode(),
            413,
            "request: 5 mentions; wanted 4 at most",
        ),
        (b" " * 2001, 413, "the request has more than 2,000 bytes; send fewer documents at once"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_line(client: TestClient, body: bytes, status: int, message: str) -> None:
    answer = client.post("/link", content=body)
    assert (answer.status_code, answer.json()) == (status, {"error": message})


def test_pages_of_other_sites_cannot_ask(client: TestClient) -> None:
    origin = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    asked = client.post("/link", json={"documents": []}, headers=origin)
    for answer, status in ((asked, 200), (client.options("/link", headers=origin), 405)):
        assert answer.status_code == status
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_what_is_not_there_is_json(client: TestClient) -> None:
    for answer, status in ((client.get("/nowhere"), 404), (client.get("/link"), 405), (client.get("/docs"), 404)):
        assert answer.status_code == status
        assert list(answer.json()) == ["error"]


def test_what_no_one_foresaw_shows_nothing_of_the_program(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret\npath")

    monkeypatch.setattr(Linker, "answer", fail)
    with TestClient(make_app(linker, LIMITS), raise_server_exceptions=False) as client:
        answer = client.post("/link", json={"documents": [{"text": TEXT}]})
    assert answer.status_code == 500
    assert answer.json() == {"error": "RuntimeError; the service's stderr says more"}


@pytest.mark.parametrize("limits", [Limits(requests=0), Limits(bodies=0), Limits(short=1, long_requests=0)])
def test_too_many_requests_are_refused(linker: Linker, limits: Limits) -> None:
    with TestClient(make_app(linker, limits)) as client:
        answer = client.post("/link", json={"documents": []})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json() == {"error": "0 requests are being answered; ask again later"}


def test_too_many_names_are_refused(linker: Linker) -> None:
    """However many a document may bring, those that are found count, too, and in each request alone."""
    limits = Limits(mentions=4)
    with TestClient(make_app(linker, limits)) as client:
        for texts, status in (([TEXT] * 2, 200), ([TEXT * 2], 200), ([TEXT] * 3, 413), ([TEXT * 3], 413)):
            answer = client.post("/link", json={"documents": [{"text": f"{text} "} for text in texts]})
            assert answer.status_code == status
    assert answer.json() == {"error": "request: 6 mentions are found; wanted 4 at most"}


def test_global_answers_are_of_few_mentions(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a pass of the model."""
    monkeypatch.setattr(service, "MOST_GLOBAL", 4)
    with TestClient(make_app(replace(linker, is_global=True), Limits())) as client:
        for count, status in ((2, 200), (3, 413)):
            answer = client.post("/link", json={"documents": [{"text": f"{TEXT} " * count}]})
            assert answer.status_code == status


@pytest.mark.parametrize(("parts", "largest"), [({}, 5), ({"recognize": lambda texts: [[] for _ in texts]}, 1)])
def test_names_are_recognised_a_request_at_a_time(
    linker: Linker, monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any], largest: int
) -> None:
    """A text that is short in bytes is long for a model: a batch would last until none of it is waited for."""
    sizes, has_begun, others_wait = list[int](), threading.Event(), threading.Event()

    def answer(self: Linker, records: Sequence[Record], own: object = ()) -> list[dict[str, Any]]:
        sizes.append(len(records))
        has_begun.set()
        assert others_wait.wait(60)
        return [{"mentions": []} for _ in records]

    monkeypatch.setattr(Linker, "answer", answer)
    body = {"documents": [{"text": TEXT}]}
    with TestClient(make_app(replace(linker, **parts), Limits())) as client, ThreadPoolExecutor(6) as threads:
        found = [threads.submit(client.post, "/link", json=body)]
        assert has_begun.wait(60)
        found += [threads.submit(client.post, "/link", json=body) for _ in range(5)]
        latest = time.monotonic() + 60
        while client.get("/health").json()["waiting"] < 6:
            assert time.monotonic() < latest
        client.get("/health")  # the last one has passed from its place to the queue
        others_wait.set()
        assert {each.result().status_code for each in found} == {200}
    assert sum(sizes) == 6
    assert max(sizes) == largest


def test_an_answer_that_takes_too_long_is_given_up(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is the work for it, and the next one is answered."""
    ended = threading.Event()

    def answer(self: Linker, records: Sequence[Record], own: object = ()) -> list[dict[str, Any]]:
        try:
            while records[0].values["text"] == "long":
                self.check()
                time.sleep(0.01)
        finally:
            ended.set()
        return [{"mentions": []} for _ in records]

    monkeypatch.setattr(Linker, "answer", answer)
    with TestClient(make_app(linker, Limits(answering=0.2))) as client:
        refused = client.post("/link", json={"documents": [{"text": "long"}]})
        assert (refused.status_code, refused.json()["error"][:31]) == (503, "not answered within 0.2 seconds")
        assert ended.wait(30)
        assert client.post("/link", json={"documents": [{"text": "short"}]}).status_code == 200


def test_texts_for_a_model_of_names_are_bounded(linker: Linker) -> None:
    limits = Limits(characters=20)
    with TestClient(make_app(replace(linker, recognize=lambda texts: [[] for _ in texts]), limits)) as client:
        for text, status in ((TEXT, 200), (TEXT * 2, 413)):
            assert client.post("/link", json={"documents": [{"text": text}]}).status_code == status


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (None, 408, "the request was not there after 0.05 seconds; send it at once"),
        (asyncio.CancelledError(), 503, "the service ends; ask again later"),
    ],
)
def test_a_slow_client_is_not_waited_for(linker: Linker, raised: BaseException | None, status: int, said: str) -> None:
    """Its place is free again, so that a second one is told the same."""
    app = make_app(linker, Limits(requests=1, reading=0.05))
    scope = {
        "type": "http", "method": "POST", "path": "/link", "headers": [], "query_string": b"",
        "http_version": "1.1",
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if raised:
            raise raised
        await asyncio.sleep(60)
        return {}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    for _ in range(2):
        asyncio.run(app({**scope}, receive, send))
    assert [each["status"] for each in sent if each["type"] == "http.response.start"] == [status] * 2
    assert [json.loads(each["body"]) for each in sent if each.get("body")] == [{"error": said}] * 2


def test_the_service_describes_itself(client: TestClient) -> None:
    """All fields of an answer are described, and nothing comes from elsewhere."""
    made = client.get("/openapi.json").json()
    assert {path: [*methods] for path, methods in made["paths"].items()} == {
        "/link": ["post"],
        "/nif": ["post"],
        "/health": ["get"],
    }
    link = made["paths"]["/link"]["post"]
    example = link["requestBody"]["content"]["application/json"]["example"]
    assert client.post("/link", json=example).status_code == 200
    assert {"200", "400", "408", "413", "500", "503"} == link["responses"].keys()
    schemas = made["components"]["schemas"]
    assert link["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/Response")
    request = {"documents": [{"text": "ab"}], "candidates": True}
    [found] = client.post("/link", json=request).json()["documents"][0]["mentions"]
    assert found.keys() <= schemas["Mention"]["properties"].keys()
    assert found["candidates"][0].keys() <= schemas["Candidate"]["properties"].keys()
    assert "http" not in json.dumps(made)


NIF = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
<http://a.org/r#char=0,12> a nif:Context ; nif:isString "Ann met Bob." ; nif:endIndex 12 .
"""
ANN = """<http://a.org/r#char=0,3> a nif:Phrase ; nif:beginIndex 0 ; nif:endIndex 3 ;
    nif:referenceContext <http://a.org/r#char=0,12> .
"""


def test_texts_of_nif_are_answered_as_documents_are(linker: Linker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mentions that a text brings are linked, or else all names; other requests are computed with it."""
    rdflib = pytest.importorskip("rdflib", reason="NIF is read with it")
    from tasks.linking.formats.nif import ITSRDF

    monkeypatch.setattr(requests, "wiki_of", lambda facts: "https://a.wikipedia.org/wiki/")
    with TestClient(make_app(linker, Limits(mentions=4))) as client:
        for given, ends in ((NIF, {"offset_0_3": "A", "offset_8_11": "B"}), (NIF + ANN, {"char=0,3": "A"})):
            headers = {"content-type": "application/x-turtle; charset=utf-8"}
            answer = client.post("/nif", content=given, headers=headers)
            assert (answer.status_code, answer.headers["content-type"][:20]) == (200, "application/x-turtle")
            graph = rdflib.Graph().parse(data=answer.text, format="turtle")
            found = {
                str(phrase).partition("#")[2]: str(page).partition("wiki/")[2]
                for phrase, page in graph.subject_objects(ITSRDF.taIdentRef)
                if "wikipedia" in page
            }
            assert found == ends
        many = NIF.replace("Ann", "Ann Ann Ann Ann")
        for content, kind, status in (
            (NIF, "text/plain", 415), ("{", "text/turtle", 400),
            (many, "text/turtle", 413), ("#" * (1 << 19), "text/turtle", 413),
        ):  # fmt: skip
            answer = client.post("/nif", content=content, headers={"content-type": kind})
            assert answer.status_code == status
            assert answer.json()["error"]


def test_a_process_serves_until_it_is_told_to_end(table: Path) -> None:
    command = [sys.executable, "-m", "tasks.linking", "serve", "--mentions", str(table), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    # A suite that a script runs in the background ignores SIGINT, and so would its children.
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=listens) as process:
        try:
            assert process.stderr
            said = process.stderr.readline().split()
            assert said[:2] == ["listening", "at"]
            assert said[2].startswith("http://127.0.0.1:")
            body = json.dumps({"documents": [{"text": TEXT}]}).encode()
            with urlopen(Request(f"{said[2]}/link", body), timeout=30) as answer:
                [document] = json.load(answer)["documents"]
            assert titles(document) == [("Ann", "A"), ("Bob", "B")]
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_the_body_of_an_answer_does_not_wait_for_its_head_to_be_received() -> None:
    with service.listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_named(run: Linking, table: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        *_, status = run("serve", "--mentions", table, "--port", port)
    assert status == f"error: --host 127.0.0.1 --port {port}: Address already in use; give others, or --port 0"
    assert re.fullmatch("error: .*--port 99999.*", str(run("serve", "--mentions", table, "--port", 99999)[2]))


def test_packages_that_are_missing_are_named(run: Linking, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find, missing = service.importlib.util.find_spec, ("fastapi", "uvicorn")
    monkeypatch.setattr(service.importlib.util, "find_spec", lambda name: None if name in missing else find(name))
    *_, status = run("serve", "--mentions", table)
    assert status == "error: serve needs packages that are not installed; pip install fastapi uvicorn"
