"""Bodies for the collector's tests: real ones as captured from players, and the smallest ones that are valid."""

import json
from pathlib import Path
from typing import Any

from services.collector.intake.post import Post

FIXTURES = Path(__file__).parents[3] / "fixtures"
RECV_TIME_MS = 1_795_177_000_000
CMCD_RECORD = 'e=t,sid="s-1",sn=4,sta=p,ts=1795177158784,v=2'


def mux_posts() -> list[dict[str, Any]]:
    """POSTs of mux-embed 5.19.0 as captured: each with its `headers` and its parsed `body`."""
    posts: list[dict[str, Any]] = json.loads((FIXTURES / "mux-embed-ok.json").read_text())
    return posts


def cmcd_bodies() -> list[bytes]:
    """Event-mode bodies of the players' common CMCD reporter as captured."""
    text = (FIXTURES / "cmcd-v2-event-mode.txt").read_text()
    # The capture opens with a request to a CDN and ends with lists of keys; bodies stand between header and "--" lines.
    return [part.partition("\n")[2].partition("--\n")[0].encode() for part in text.split('{"Content-Type":')[1:]]


def mux_event(**changed: Any) -> dict[str, Any]:
    """The smallest event that is a beacon, with fields changed; a field set to `...` is left out."""
    event = {"ake": "acme", "xid": "view-1", "e": "hb", "xsqno": 7, "uti": 1_795_176_999_000} | changed
    return {name: value for name, value in event.items() if value is not ...}


def mux_body(*events: Any, **metadata: Any) -> bytes:
    """A body of these events, with a send time unless `metadata` says otherwise."""
    return json.dumps(
        {"metadata": {"transmission_timestamp": RECV_TIME_MS - 40} | metadata, "events": list(events)}
    ).encode()


def post(body: bytes, **fields: Any) -> Post:
    """A POST of `body`."""
    return Post(**{"origin": "/", "body": body, "recv_time_ms": RECV_TIME_MS, "batch_id": "b-1"} | fields)


def native_beacon(**changed: Any) -> dict[str, Any]:
    """The smallest beacon of the native format, with fields changed; a field set to `...` is left out."""
    beacon = {"view_id": "view-1", "event": "heartbeat", "time_ms": 1_795_176_999_000} | changed
    return {name: value for name, value in beacon.items() if value is not ...}


def epas_event(**changed: Any) -> dict[str, Any]:
    """An event as the EPAS web SDK sends it, with fields changed; a field set to `...` is left out."""
    event = {
        "event": "heartbeat",
        "sessionId": "session-1",
        "timestamp": 1_795_176_999_000,
        "playhead": 12.5,
        "duration": 600,
    } | changed
    return {name: value for name, value in event.items() if value is not ...}
