"""The alert of the demo's incident: a rule as an operator makes one, a receiver on this machine, and what came of both."""

import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from deploy.demo.comparing.asking import VIEWS_MIN, Api, described
from deploy.demo.comparing.compare import Line, Row
from loadtest.incident import Incident
from services.rim.http.signing import headers, key_of

#: The largest customer of the simulated players.
CUSTOMER: Final = "acme"
#: From the incident's begin to the bucket that opens the alert. Players report every ten seconds, so a stall is seen late.
OPENED_WITHIN_MS: Final = 30_000
#: In a run whose incident begins earlier, too few stall at a time to tell.
FROM_MS_MIN: Final = 36_000
_BODY_BYTES_MAX: Final = 1_000_000


@dataclass(frozen=True)
class Message:
    """One message, as the receiver verified it."""

    id: str
    type: str
    data: Mapping[str, Any]
    is_signed: bool


@dataclass
class Receiver:
    """An HTTP server on this machine, which takes everything that it is sent. Use `start`, then `stop`."""

    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    messages: list[Message] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        """Listens."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._take))
        threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True).start()

    def stop(self) -> None:
        """Listens no more. Safe without `start`."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def url(self) -> str:
        """Where it is reached."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_address[1]}/alerts"

    def _take(self, given: Mapping[str, str], body: bytes) -> None:
        message_id, at = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
        signed = headers(key_of(self.secret), message_id, int(at) if at.isdecimal() else 0, body)
        found = json.loads(body)
        is_signed = signed["webhook-signature"] == given.get("webhook-signature")
        self.messages.append(Message(message_id, found["type"], found["data"], is_signed))


class Alert:
    """The alert of a run. Use `prepare` before the players begin, `line` when all is over, then `stop`."""

    def __init__(self, incident: Incident) -> None:
        self.receiver = Receiver()
        self._incident = incident
        self._rule_id = ""

    def prepare(self, api: Api) -> None:
        """Makes the receiver and the rule. Raises `NotAnswered`."""
        self.receiver.start()
        target = {"url": self.receiver.url, "secret": self.receiver.secret}
        made = api.send("/v1/alerts/receivers", {"name": "the demo", "kind": "webhook", "target": target})
        self._rule_id = str(api.send("/v1/alerts/rules", rule_of(self._incident, [made["id"]]))["id"])

    def line(self, api: Api, rows: Sequence[Row], began_ms: int) -> Line:
        """When and where the incident was found, and whether the receiver has one message of it. Raises `NotAnswered`."""
        incident, messages = self._incident, self.receiver.messages
        listed = api.ask("/v1/alerts/incidents", customer=CUSTOMER)["incidents"]
        found = [one["event"] for one in listed if one["event"]["rule_id"] == self._rule_id]
        wanted = {"cdn": incident.cdn, "asn": str(incident.asn)}
        late_ms = [one["opened_ms"] - began_ms - incident.from_ms for one in found]
        where = [one["slices"][0]["slice"] for one in found]
        opened = {one.id: one for one in messages if one.type == "alert.opened"}
        is_right = (
            where == [wanted]
            and 0 <= late_ms[0] <= OPENED_WITHIN_MS
            and [one.data["incident_id"] for one in opened.values()] == [found[0]["incident_id"]]
            and all(one.is_signed for one in messages)
        )
        is_checked = len(rows) >= VIEWS_MIN and incident.from_ms >= FROM_MS_MIN
        notified = [
            f"after {late / 1_000:.0f} s: {described(place)}" for late, place in zip(late_ms, where, strict=True)
        ]
        return Line(
            "alert of the incident; messages",
            f"{', '.join(notified) or 'none'}; {len(opened)}",
            f"after 0 to {OPENED_WITHIN_MS // 1_000} s: {described(wanted)}; 1",
            is_right if is_checked or is_right else None,
        )

    def stop(self) -> None:
        """Ends the receiver. Safe without `prepare`."""
        self.receiver.stop()


def rule_of(incident: Incident, receivers: Sequence[str]) -> dict[str, Any]:
    """Too many viewers of one CDN wait, by network. Usually up to a tenth of them do."""
    return {
        "customer": CUSTOMER,
        "name": f"Viewers of {incident.cdn} wait",
        "metric": "rebuffering",
        "condition": "threshold",
        "threshold": 0.2,
        "filter": {"cdn": incident.cdn},
        "by": "asn",
        "for_seconds": 10,
        "viewers_min": 20,
        "severity": "critical",
        "receivers": list(receivers),
    }


def _handler(take: Callable[[Mapping[str, str], bytes], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers success once it has the message."""

        def do_POST(self) -> None:
            """A message."""
            length = int(self.headers.get("Content-Length") or 0)
            if length > _BODY_BYTES_MAX:
                self.send_error(413)
                return
            take({name.lower(): value for name, value in self.headers.items()}, self.rfile.read(length))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library names it
            """Nothing: the demo's output is its own."""

    return Handler
