"""A receiver of webhooks on this host, whose answers the test sets."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass(frozen=True)
class Got:
    """One attempt that arrived, and how it was answered."""

    id: str
    status: int
    body: dict[str, Any]
    is_signed: bool


@dataclass
class Receiver:
    """What arrived, in order."""

    url: str
    #: The status for a message, by how many attempts at it came before.
    status_of: Callable[[str, int], int]
    got: list[Got] = field(default_factory=list)

    def taken(self) -> list[Got]:
        """What was answered 2xx."""
        return [one for one in self.got if one.status // 100 == 2]


@contextmanager
def receiving(status_of: Callable[[str, int], int] = lambda _id, _before: 204) -> Iterator[Receiver]:
    receiver = Receiver("", status_of)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            message_id = self.headers["webhook-id"]
            # Verified from the specification's own words, not with the code under test.
            signed = f"{message_id}.{self.headers['webhook-timestamp']}.".encode() + body
            digest = hmac.new(base64.b64decode(SECRET[6:]), signed, hashlib.sha256).digest()
            is_signed = self.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
            with lock:
                status = receiver.status_of(message_id, sum(one.id == message_id for one in receiver.got))
                receiver.got.append(Got(message_id, status, json.loads(body), is_signed))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook?token=t0p"
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
