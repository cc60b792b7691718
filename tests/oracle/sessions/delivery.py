"""How a session's requests come: lost, twice, out of order, from a spool; through the real intake into records."""

from collections.abc import Callable
from itertools import accumulate
from random import Random
from typing import Any, Final, NamedTuple

import orjson

from services.collector.intake import epas, native
from services.collector.intake.cmcd import cmcd
from services.collector.intake.mux import mux
from services.collector.intake.post import ParsedBody, Post, Rules
from services.collector.intake.sender.client import Agent, Client, Place
from services.collector.sink.records import records_of
from shared import topics
from tests.oracle.rows.requests import CUSTOMER, T0, Request
from tests.oracle.sessions import cmcd_client, json_clients, mux_client
from tests.oracle.sessions.viewer import MINUTE_MS, Session

RULES: Final = Rules(collector_id="c-1")
_PHONE: Final = Client(user_agent="a", agent=Agent("Chrome", "Android", "phone"), place=Place("DE", 3320))
_DESK: Final = Client(user_agent="b", agent=Agent("Firefox", "Linux", "desktop"), place=Place("FR", 3215))
#: A fold keeps the newest 64 beacons exchangeable, but of mux 256: longer sessions come in order.
EXCHANGEABLE_MAX: Final = 60

#: A request with its send time is in flight as long as a server waits at most; what is sent again has a new send time.
_WITH_SEND_TIME: Final = ("mux", "native")
_DELAYS_MS: Final = {True: (2_000, 20_000), False: (2_000, 30_000, 4 * MINUTE_MS)}

_CLIENTS: Final[dict[str, Callable[[Session], list[Request]]]] = {
    "mux": mux_client.requests,
    "hls.js": cmcd_client.requests,
    "dash.js": cmcd_client.requests,
    "shaka": cmcd_client.requests,
    "reporter": cmcd_client.requests,
    "epas": json_clients.epas_requests,
    "native": json_clients.native_requests,
    "native-unnumbered": json_clients.native_requests,
}


class Delivered(NamedTuple):
    """One record of topic `beacons`: its bytes, and the beacon in them as JSON. Times in ms since 1970."""

    append_ms: int
    key: bytes
    value: bytes
    beacon: dict[str, Any]


def delivered(session: Session, seed: int) -> list[Delivered]:
    """The records of a session, in the order of their append times."""
    rng = Random(f"{seed}/{session.number}/network")
    requests = _CLIENTS[session.client](session)
    disorder = session.disorder if len(requests) <= EXCHANGEABLE_MAX else 0.0
    came: list[tuple[int, int, Delivered]] = []
    last_ms = 0
    for place, request in enumerate(requests):
        if rng.random() < session.losses:
            continue
        for _ in range(2 if rng.random() < session.resends else 1):
            recv_ms = request.sent_ms + rng.randint(10, 400)
            held_ms = rng.randint(1, 5)
            if rng.random() < disorder:
                recv_ms += rng.choice(_DELAYS_MS[request.route in _WITH_SEND_TIME])
                held_ms += rng.choice((0, 30_000, 4 * MINUTE_MS))
            append_ms = recv_ms + held_ms
            if session.spool[0] <= append_ms < session.spool[1]:
                append_ms = session.spool[1] + rng.randint(0, 5_000)
            if not disorder:
                last_ms = append_ms = max(append_ms, last_ms)
            records = taken(request, T0 + recv_ms, rng)
            came += [(append_ms, place, Delivered(T0 + append_ms, *record)) for record in records]
    if session.client != "mux" and disorder and len(came) > EXCHANGEABLE_MAX:
        latest_ms = list(accumulate((append_ms for append_ms, _, _ in came), max))
        came = [
            (append_ms, place, one._replace(append_ms=T0 + append_ms))
            for append_ms, (_, place, one) in zip(latest_ms, came, strict=True)
        ]
    came.sort(key=lambda one: one[:2])
    return [one for _, _, one in came]


def taken(request: Request, recv_time_ms: int, rng: Random) -> list[tuple[bytes, bytes, dict[str, Any]]]:
    """What the collector makes of a request: key, value and decoded value of each record."""
    post = Post(
        origin="/",
        body=request.body,
        key=CUSTOMER,
        recv_time_ms=recv_time_ms,
        client=_PHONE if rng.random() < 0.95 else _DESK,
        in_seconds=request.route == "epas",
        batch_id="b",
    )
    found = _take(request.route, post)
    assert not found.rejected, (found.rejected, request.body)
    records = records_of(found, post, topics.PROFILES["laptop"])
    return [(record.key or b"", record.value, orjson.loads(record.value)) for record in records]


def _take(route: str, post: Post) -> ParsedBody:
    match route:
        case "mux":
            return mux.parse_beacons(post, RULES)
        case "cmcd":
            return cmcd.parse_records(post, RULES)
        case "epas":
            return epas.parse_event(post, RULES, "new").parsed
        case _:
            return native.parse_beacons(post, RULES)
