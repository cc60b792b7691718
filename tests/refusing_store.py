"""An S3 store on this machine that takes objects, or answers with a status by name. Its clients are the real ones."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RefusingStore:
    """What it has and what it refuses, by object name. One request an object: at most 5 MiB."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        #: The status that is answered for a name that the pattern finds.
        self.refusals: dict[str, int] = {}
        #: Requests by name.
        self.tries: dict[str, int] = {}
        self.environ: dict[str, str] = {}

    def put(self, name: str, content: bytes) -> int:
        """The status of the answer."""
        self.tries[name] = self.tries.get(name, 0) + 1
        for pattern, status in self.refusals.items():
            if re.search(pattern, name):
                return status
        self.objects[name] = content
        return 200


@contextmanager
def refusing_store() -> Iterator[RefusingStore]:
    """A store at work; its `environ` lets `s3://bucket` be it."""
    store = RefusingStore()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(store.put(self.path.removeprefix("/bucket/"), content))
            self.send_header("ETag", '"etag"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    store.environ = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
