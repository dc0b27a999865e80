"""What decides the meaning of the figures of `benchmarks.tasks.linking`; nothing is measured here."""

import json
import mmap
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from benchmarks.tasks import linking as script
from benchmarks.tasks import linking_workloads as workloads
from model.files import save_model
from model.luke.config import LukeConfig
from model.luke.heads import LukeForPretraining
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tests.support.fine_tuned import CONFIG
from tests.support.mentions import ARTICLES, small_pages, write_mentions

TEXT = "Ann and ab met Bob."


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mentions")
    write_mentions(folder, small_pages(ARTICLES), size=5)
    return folder


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("documents") / "documents.jsonl"
    lines = [{"text": TEXT}, {"text": TEXT, "mentions": [{"start": 8, "end": 10}, {"start": 11, "end": 14}]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_the_command_is_counted(table: Path, documents: Path) -> None:
    """A mention without a page does not count."""
    given, found = ["--mentions", str(table), str(documents)], ["--find-mentions"]
    counted = [workloads.link(arguments=[*given, *more], rounds=2) for more in ([], found)]
    assert [[row["mentions"] for row in each["rows"]] for each in counted] == [[4, 4], [6, 6]]
    row = script.command_row("given", counted[0])
    seconds = sum(each["cpu_seconds"] for each in counted[0]["rows"]) / 2
    assert (row["linked"], row["mentions/s"]) == (4, pytest.approx(4 / seconds))
    assert row["largest MB"] > 10
    assert script.command_row("given", {"failure": "no"})["mentions/s"] is None


def test_the_encoder_has_the_batches_of_the_command(table: Path, documents: Path, tmp_path: Path) -> None:
    """All tokens of both documents in one batch, with [CLS] and [SEP], in as many rounds as were asked for."""
    train_tokenizer([TEXT] * 4, tmp_path / "tokenizer", CONFIG.vocab_size)
    words = len(json.loads((tmp_path / "tokenizer/vocab.json").read_text()))
    config = LukeConfig(**{**vars(CONFIG), "vocab_size": words, "entity_vocab_size": 5})
    torch.manual_seed(0)
    save_model(tmp_path / "model", LukeForPretraining(config).eval())
    method = [
        "--model",
        str(tmp_path / "model"),
        "--tokenizer",
        str(tmp_path / "tokenizer"),
        "--device",
        "cpu",
    ]
    arguments = ["--mentions", str(table), *method, "--local", str(documents)]
    found = workloads.encoder(arguments=arguments, rounds=2, threads=torch.get_num_threads())
    assert [(row["round"], row["variant"]) for row in found["rows"]] == [
        (0, "link"), (0, "encoder"), (1, "link"), (1, "encoder"),
    ]  # fmt: skip
    tokens = 2 + len(WordTokenizer.load(tmp_path / "tokenizer").encode_with_offsets(TEXT)[0])
    assert (found["mentions"], found["batches"], found["words"]) == (5, 1, 2 * tokens)
    loaded = workloads.loaded(model=str(tmp_path / "model"), tokenizer=str(tmp_path / "tokenizer"))
    assert loaded["parameters"] == sum(each.numel() for each in LukeForPretraining(config).parameters())


def test_what_is_lost_is_of_medians() -> None:
    times = {"link": (3.0, 10.0, 4.0), "encoder": (3.0, 2.0, 9.0)}
    rows = [
        {"round": n, "variant": name, "seconds": value, "cpu_seconds": value * (1 + (name == "link"))}
        for name, values in times.items()
        for n, value in enumerate(values)
    ]
    found = script.encoder_rows("local", {"rows": rows, "mentions": 12})
    assert [(row["way"], row["clock"], row["mentions/s"], row["lost, %"]) for row in found] == [
        ("local", "seconds", 3.0, 25.0),
        ("local", "cpu_seconds", 1.5, 62.5),
    ]
    failed = script.encoder_rows("global", {"failure": "no"})
    assert [(row["mentions/s"], row["lost, %"]) for row in failed] == [(None, None)] * 2


@contextmanager
def answering(status: int = 200) -> Iterator[tuple[int, Counter[str]]]:
    """A service that gives each document as many mentions as it has characters; its port and what it was asked."""
    texts = Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            [document] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["documents"]
            texts[document["text"]] += 1
            answer = {"documents": [{"mentions": [*document["text"]]}]} if status == 200 else {"error": "no"}
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port, texts
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_each_text_is_asked_once(clients: int) -> None:
    texts = [f"{n} é" for n in range(7)] + ["0 é"]
    with answering() as (port, asked):
        seconds, mentions = script.ask(port, texts, clients)
    assert (asked, mentions) == (Counter(texts), sum(map(len, texts)))
    assert seconds > 0


def test_an_error_is_no_answer() -> None:
    with answering(503) as (port, _), pytest.raises(ValueError, match=r"^the service answers 503: no$"):
        script.ask(port, ["a"], 1)


def test_look_ups_are_mapped_and_a_copy_is_told(table: Path, tmp_path: Path) -> None:
    shutil.copytree(table, tmp_path / "table")
    opened = MentionTable(str(tmp_path / "table"))
    assert opened.get("ab")
    assert opened.targets.get("A")
    rows = script.mapped(os.getpid(), [tmp_path / "table"])
    assert {each["file"]: each["MB"] for each in rows} == {
        name: (table / name).stat().st_size / 1e6 for name in script.LOOK_UPS
    }
    service = {"model": "none", "clients": 1, "mapped": rows}
    assert [row["passed"] for row in script.checks([service], script.LOOK_UPS)] == [True]
    assert [row["passed"] for row in script.checks([service | {"mapped": rows[1:]}], script.LOOK_UPS)] == [
        False
    ]
    (tmp_path / "copied").mkdir()
    file = tmp_path / "copied" / rows[0]["file"]
    file.write_bytes(bytes(2 * mmap.PAGESIZE))
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY) as copied:
        copied[0] = 1
        [row] = script.mapped(os.getpid(), [file.parent])
    assert row["own"] == mmap.PAGESIZE / 1e6
    assert [
        row["passed"] for row in script.checks([service | {"mapped": [row, *rows[1:]]}], script.LOOK_UPS)
    ] == [False]


def test_targets() -> None:
    commands = [{"mentions": "given", "mentions/s": 1999.0}, {"mentions": "found", "mentions/s": 2000.0}]
    encoder = [
        {"way": "local", "clock": "seconds", "lost, %": 10.5},
        {"way": "global", "clock": "cpu_seconds", "lost, %": None},
    ]
    services = [
        {"clients": 1, "batches": "yes", "besides the model, MB": None},
        {"clients": 8, "batches": "no", "besides the model, MB": 599.0},
    ]
    assert [row["met"] for row in script.targets(commands, encoder, services)] == [
        False,
        True,
        False,
        None,
        True,
    ]
