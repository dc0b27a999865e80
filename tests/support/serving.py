"""A server in a thread of this process."""

import contextlib
import threading
from collections.abc import Iterator

import uvicorn

from tasks.linking.service.service import listen


@contextlib.contextmanager
def in_thread(server: uvicorn.Server) -> Iterator[int]:
    """Its port, for as long as it serves."""
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()
