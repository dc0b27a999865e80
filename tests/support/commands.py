"""`python`, `luigi` and `luke` as programs that begin at once: a fork does their work that has imported everything.

The first command of each module is a new interpreter, as users have it.
"""

import atexit
import contextlib
import functools
import json
import logging
import multiprocessing
import os
import runpy
import shutil
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.support.forked import FORKS

# Gives its words, its folder, its environment and its three files to the server, and ends as the fork has ended.
_CLIENT = """#!{python} -IS
import json, os, signal, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([[os.path.basename(sys.argv[0]), *sys.argv[1:]], os.getcwd(), dict(os.environ)])
    socket.send_fds(server, [b" "], [0, 1, 2])
    server.sendall(request.encode())
    server.shutdown(socket.SHUT_WR)
    status = int(server.recv(10) or b"1")
if status < 0:
    if -status != signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@functools.cache
def programs() -> Path:
    """A folder with the three programs, for the front of PATH; they can be used as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="luke-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = str(folder / "server")
    for name in ("python", "luigi", "luke"):
        (folder / name).write_text(_CLIENT.format(python=sys.executable, address=address))
        (folder / name).chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        FORKS.Process(target=_serve, args=(listener,), daemon=True).start()
    return folder


def _serve(listener: socket.socket) -> None:
    """Give each client a fork, as long as the process lives that has asked for it."""
    import pipeline.jobs.beam  # noqa: F401  so that each fork has it

    logging.getLogger().handlers.clear()  # Beam has warned of what is not installed
    parent = multiprocessing.parent_process()
    assert parent is not None
    seen: set[str] = set()
    while parent.sentinel not in wait([listener, parent.sentinel]):
        client, _ = listener.accept()
        _, files, _, _ = socket.recv_fds(client, 1, 3)
        with client.makefile("rb") as request:
            asked = request.read()
        if len(files) < 3 or not asked:  # it was killed before it could ask
            client.close()
            continue
        words, folder, environment = json.loads(asked)
        kind = " ".join(words[:3] if words[1:2] == ["-m"] else words[:1])
        if os.fork() == 0:
            listener.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.chdir(folder)
            _answer(client, words, environment, is_first=kind not in seen)
        seen.add(kind)
        for file in files:
            os.close(file)
        client.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _answer(client: socket.socket, words: Sequence[str], environment: dict[str, str], *, is_first: bool) -> None:
    """Run a program in a process of its own, tell the client how it has ended, and end."""
    if (process := os.fork()) == 0:
        os.setsid()
        client.close()
        if is_first:
            program = str(Path(sys.executable).with_name(words[0]))
            os.execve(program, [program, *words[1:]], environment)
        os.environ.clear()
        os.environ.update(environment)
        os._exit(_run(words))
    for number in range(3):  # a reader of the program's output waits for its end
        os.close(number)
    _, status = os.waitpid(process, 0)
    with contextlib.suppress(OSError):  # a client that has gone
        client.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(words: Sequence[str]) -> int:
    """The exit status of a program that is run here."""
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for number, mode in enumerate("rww")
    )
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    status: Any = 0
    try:
        _main(words)
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    return status if isinstance(status, int) else int(status is not None)


def _main(words: Sequence[str]) -> None:
    if words[0] == "luigi":
        from luigi.cmdline import luigi_run

        from workflows.base import commandline

        sys.argv = [str(Path(sys.executable).with_name("luigi")), *words[1:]]
        assert commandline.is_luigi_command()
        commandline.prepare(arguments := sys.argv[1:])
        sys.exit(luigi_run(arguments))
    if words[0] == "luke":
        from workflows import luke

        sys.argv = [*words]
        sys.exit(luke.main())
    flag, what, *arguments = words[1:]
    sys.argv = [flag, *arguments]
    if flag == "-m":
        # It may be imported, and is run anew; a package stays, or it would lose its modules.
        sys.modules.pop(f"{what}.__main__", None)
        if not hasattr(sys.modules.get(what), "__path__"):
            sys.modules.pop(what, None)
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert flag == "-c"
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
