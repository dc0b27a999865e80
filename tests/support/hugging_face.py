"""Hugging Face on this machine: a server of repositories that counts what it is asked for."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from model.hf.hub import find_model

NEWEST, OLDER = "a" * 40, "b" * 40
Files = dict[str, bytes]
OLD, NEW = "pytorch_model.bin", "model.safetensors"
SMALL = {"config.json": b'{"model_type": "roberta", "hidden_size": 768}', "README.md": b"a card"}
ROBERTA = {**SMALL, "vocab.json": b'{"<s>": 0}', "merges.txt": b"#version: 0.2\n", "tokenizer.json": b"{}"}
KERAS, TWO = {"tf_model.h5": b"other"}, [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
REPOSITORIES = {
    "someone/luke": {**ROBERTA, **KERAS, "entity_vocab.json": b"[]", NEW: b"new", OLD: b"old"},
    "someone/large": {**ROBERTA, **{name: name.encode() for name in TWO}},
    "someone/old": {**ROBERTA, **KERAS, OLD: b"old"},
    "someone/bert": {**SMALL, "vocab.txt": b"[PAD]\n", "tokenizer_config.json": b"{}", NEW: b"new"},
    "someone/flax": {**ROBERTA, "flax_model.msgpack": b"other"},
    "someone/speech": {**SMALL, NEW: b"new"},
}


class Hub:
    """Repositories by their names; each has two revisions of the same files, `main` the newest and a tag `v1`."""

    def __init__(self, repositories: dict[str, Files]) -> None:
        self.repositories = repositories
        self.fetched: list[str] = []  # "name@revision/file"
        self.newest = NEWEST
        self.url = ""

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        words = urlsplit(path).path.strip("/").split("/")
        is_api = words[:2] == ["api", "models"]
        words = words[2:] if is_api else words
        name, (kind, revision, *rest) = "/".join(words[:2]), [*words[2:], "", ""][: max(2, len(words) - 2)]
        files = self.repositories.get(name)
        commit = {"main": self.newest, "v1": OLDER}.get(revision, revision or self.newest)
        if files is None or commit not in (NEWEST, OLDER, "c" * 40):
            code = "RepoNotFound" if files is None else "RevisionNotFound"
            return 404, {"X-Error-Code": code}, b"{}"
        if is_api and kind == "tree":
            tree = [
                {"type": "file", "path": each, "size": len(files[each]), "oid": hashlib.sha1(files[each]).hexdigest()}
                for each in files
            ]
            return 200, {}, json.dumps(tree).encode()
        if is_api:
            siblings = [{"rfilename": each} for each in files]
            return 200, {}, json.dumps({"id": name, "sha": commit, "siblings": siblings}).encode()
        file = "/".join(rest)
        etag = f'"{hashlib.sha1(files[file]).hexdigest()}"'
        return 200, {"ETag": etag, "X-Repo-Commit": commit}, files[file]


@contextlib.contextmanager
def hugging_face(repositories: dict[str, Files]) -> Iterator[Hub]:
    """Serve repositories on loopback."""
    hub = Hub(repositories)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = hub.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)
                if "/resolve/" in self.path:
                    hub.fetched.append(self.path.strip("/").replace("/resolve/", "@"))

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


def forget() -> None:
    """Forget what a new run does not know yet."""
    find_model.cache_clear()


def fetched(served: Hub) -> set[str]:
    """The files that were fetched since the last call, without repository and revision."""
    names = {path.split("/", 2)[2] for path in served.fetched}
    served.fetched.clear()
    return names
