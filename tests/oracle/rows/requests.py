"""What every client makes of a session: requests, each a body for a route of the collector at a right time."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from tests.oracle.sessions.viewer import Session

#: The page's load by a right clock, ms since 1970.
T0: Final = 1_790_000_000_000
CUSTOMER: Final = "acme"


class Said(NamedTuple):
    """One beacon as a client puts it into a body; `at_ms` is the right time, after the page's load."""

    at_ms: int
    item: object
    #: Sent at once, not with the next batch.
    urgent: bool = False


class Request(NamedTuple):
    """One POST."""

    sent_ms: int
    route: str
    body: bytes


def batched(
    said: Iterable[Said],
    interval_ms: int,
    route: str,
    body: Callable[[Sequence[object], int], bytes],
    session: Session,
    *,
    size_max: int = 300,
) -> list[Request]:
    """Requests of beacons that wait for a timer, an urgent one or a full batch. What still waits at the end is lost."""
    requests: list[Request] = []
    waiting: list[Said] = []

    def send(at_ms: int) -> None:
        requests.append(Request(at_ms, route, body([one.item for one in waiting], at_ms)))
        waiting.clear()

    for one in said:
        if waiting and one.at_ms - waiting[0].at_ms >= interval_ms:
            send(session.awake_ms(waiting[0].at_ms + interval_ms))
        waiting.append(one)
        if one.urgent or len(waiting) >= size_max:
            send(one.at_ms)
    return requests
