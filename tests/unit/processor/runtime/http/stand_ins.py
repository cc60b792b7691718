"""What stands in for the group, the slot's loop and the replica where a lookup server is tested without Kafka."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

from services.processor.engine.routing import Owner, Owners
from services.processor.runtime.http.server import Endpoint
from services.processor.runtime.kafka.ownership import Described, boot_seconds
from services.processor.runtime.questions import Questions
from services.rim.http.credentials import Credentials, entry, parse

TOKEN = "a token of sixteen or more"
#: With which slots pass requests on.
SLOTS_TOKEN = "that slots have among themselves"
PARTITIONS = 8


def endpoint(port: int, *entries: str, **options: Any) -> Endpoint:
    """Admits a caller with `TOKEN` to everything but what slots alone may do, those of `entries`, and slots."""
    own = entry("slots", ["slots", "operators", "partitions"], SLOTS_TOKEN)
    asking = entry("test", ["lookups", "objects", "read", "write", "partitions", "operators"], TOKEN)
    known = Credentials(parse(" ".join([own, asking, *entries])))
    return Endpoint("127.0.0.1", port, SLOTS_TOKEN, known, **options)


class Group:
    """Stands in for `Ownership`: it says what the test sets, each time it is wanted."""

    def __init__(self, url: str, member_id: str) -> None:
        self.owners = Owners(url, PARTITIONS, dict.fromkeys(range(PARTITIONS), Owner("test/0", url)))
        self.member_id = member_id
        self.is_settled = True
        self._on_news: Callable[[], None] = lambda: None
        self.newest = Described()

    def start(self, on_news: Callable[[], None]) -> None:
        self._on_news = on_news

    def stop(self) -> None: ...

    def want(self) -> None:
        self.newest = Described(boot_seconds(), {}, dict.fromkeys(range(PARTITIONS), self.member_id), self.is_settled)
        self._on_news()


class Answering(Questions):
    """A loop that turns at once."""

    def ask(self, question: Callable[[], Any]) -> Future[Any]:
        answer = super().ask(question)
        self.answer()
        return answer


class Here(SimpleNamespace):
    """Stands in for `Replica`: what this process is, and what it hears of standbys."""

    def __init__(self) -> None:
        super().__init__(worker=None, standby=None, urls=[])

    def standby_urls(self, _partition: int) -> list[str]:
        return list(self.urls)

    def standby_lag(self, _partition: int) -> int | None:
        return 7


def having(partitions: frozenset[int], **queries: Any) -> SimpleNamespace:
    """Stands in for a `Worker` that has these partitions."""
    return SimpleNamespace(queries=SimpleNamespace(has=partitions.__contains__, questions=Answering(), **queries))


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """The address of a server that answers every GET so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
