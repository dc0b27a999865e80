"""The service in uvicorn, asked through sockets by clients that are slow, many, or in the middle of sending."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")
pytest.importorskip("fastapi", reason="the service is made of it")
pytest.importorskip("uvicorn", reason="the service runs in it")

import uvicorn

from tasks.io.records import Record
from tasks.linking.linker import Linker
from tasks.linking.service.connections import Protocol, Server
from tasks.linking.service.requests import Limits
from tasks.linking.service.service import make_app
from tests.support.clients import bytewise, linked, post, send
from tests.support.serving import in_thread

SECONDS, MOST = 1.0, 6  # that a client may let the service wait, and connections
LIMITS = Limits(bytes=100_000, short=500, reading=2 * SECONDS)
TEXT = "Ann met Bob."


@pytest.fixture(scope="module")
def port(linker: Linker) -> Iterator[int]:
    config = uvicorn.Config(make_app(linker, LIMITS), http=Protocol, log_level="error", lifespan="on")
    with in_thread(Server(config, SECONDS, MOST)) as port:
        yield port


def ask(port: int, *requests: tuple[Any, ...]) -> list[str]:
    """The statuses of requests that are sent together, each with its parts, pause and wait before the answer."""

    async def run() -> list[tuple[str, bytes]]:
        return await asyncio.gather(*(send(port, *each) for each in requests))

    return [status for status, _ in asyncio.run(run())]


def chunked(body: bytes, size: int) -> bytes:
    """A request whose body is in chunks of so many bytes."""
    parts = (body[at : at + size] for at in range(0, len(body), size))
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))
    return post(chunks, "Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    ("request_", "statuses"),
    [
        (([linked(TEXT)],), ["200"]),
        (([linked(TEXT * 500)],), ["200"]),
        (([linked(TEXT)], 0.0, 0.5), ["200"]),
        ((bytewise(linked(TEXT), 70), 0.002), ["200"]),
        (([b""],), ["closed", "reset"]),
        (([b"POST /li"],), ["closed", "reset"]),
        ((bytewise(linked(TEXT), 0), 0.2), ["closed", "reset"]),
        ((bytewise(linked(TEXT), 70), 0.05), ["408"]),
        (([chunked(b"[[[[", 2)],), ["400"]),
        (([chunked(b" " * 90_000, 100)],), ["400"]),
        (([chunked(b" " * 200_000, 5000)],), ["413"]),
        (([chunked(b" " * 90_000, 1)],), ["closed", "reset"]),
        (([post(bytes(1 << 24))],), ["413"]),
        (([post(b"[" * 90_000)],), ["400"]),
        (([b"\x00\xff\r\n\r\n"],), ["400"]),
        (([post(b"", "Content-Length: -1")],), ["400"]),
        (([post(b"", "Content-Length: 1", "Content-Length: 2")],), ["400"]),
        (([post(b"", f"X: {'a' * 200_000}")],), ["400", "closed", "reset"]),
    ],
)
def test_each_client_gets_what_it_deserves(port: int, request_: tuple[Any, ...], statuses: Sequence[str]) -> None:
    """Slow and silent ones are left; who sends too much is told so, although it goes on sending."""
    [status] = ask(port, request_)
    assert status in statuses
    assert ask(port, ([linked(TEXT)],)) == ["200"]


def test_a_client_may_ask_again_and_again(port: int) -> None:
    """Each answer begins the time anew."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client, client.makefile("rb") as stream:
        for _ in range(5):
            client.sendall(linked(TEXT))
            head = b"".join(iter(stream.readline, b"\r\n")).decode().lower()
            assert head.startswith("http/1.1 200")
            assert json.loads(stream.read(int(head.partition("content-length: ")[2].split()[0])))
            time.sleep(0.6 * SECONDS)


def test_silent_clients_make_room_for_others(port: int) -> None:
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3 * MOST)]
    assert ask(port, ([linked(TEXT)],)) == ["200"]
    time.sleep(2 * SECONDS)
    for each in silent:
        each.settimeout(30)
        try:
            assert each.recv(1) == b""
        except ConnectionResetError:
            pass
        finally:
            each.close()


def test_who_does_not_read_its_answer_is_left(port: int) -> None:
    """Its answers are more than what is under way between the two."""
    request = linked(TEXT * 340)  # of 1,020 mentions
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            client.sendall(request * 4000)
    assert ask(port, ([linked(TEXT)],)) == ["200"]


def test_a_short_request_does_not_wait_for_a_long_one(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though there are more of them than are answered at once; a place is had by who takes less."""
    goes, real = threading.Event(), Linker.answer

    def answer(self: Linker, records: Sequence[Record], own: object = ()) -> list[dict[str, Any]]:
        if len(records[0].text("text")) > LIMITS.short:
            assert goes.wait(30)
        return real(self, records)

    monkeypatch.setattr(Linker, "answer", answer)
    found = list[str]()
    long_ones = [([linked(TEXT * 50 + "." * more)],) for more in range(4)]
    thread = threading.Thread(target=lambda: found.extend(ask(port, *long_ones)))
    thread.start()
    time.sleep(0.2)
    assert ask(port, *[([linked(TEXT)],)] * 2) == ["200"] * 2
    time.sleep(1.5 * SECONDS)  # longer than a client may let the service wait
    assert found == []
    goes.set()
    thread.join()
    assert found == ["200"] * 4
