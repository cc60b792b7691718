"""The kinds of client and their traits, in one table: all facts about a client except its wire format."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from shared.schemas.beacon import SourceName


class Ordering(StrEnum):
    """What puts the beacons of a view in their order."""

    NUMBER = "number"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Source:
    """The traits of one kind of client. docs/view.md says what follows from each."""

    name: SourceName
    ordering: Ordering
    #: The longest time between two beacons of a view that plays, ms, where the client is not set to another one.
    heartbeat_ms: int
    #: The number of a view's first beacon; None where beacons have no numbers.
    first_number: int | None = None
    #: Whether the view id of a beacon is that of a session, which may hold several plays, each a view of its own.
    has_plays: bool = False
    #: Whether the view id of a beacon is the row's `session_id`.
    names_session: bool = False
    #: Whether a beacon that was folded may still move: to another place in its view, or to another play.
    takes_back: bool = False
    #: Whether the client measures every frame and sends counters: what it has not counted did not happen.
    counts_itself: bool = False
    #: Fields of the row whose counters count since the session began, not since the play.
    session_counters: frozenset[str] = frozenset()
    #: Whether live latency is measured by the client's clock, so that the clock offset is to be added.
    latency_by_clock: bool = False


SOURCES: Final[Mapping[str, Source]] = MappingProxyType(
    {
        source.name: source
        for source in (
            Source(
                "mux",
                Ordering.NUMBER,
                # `hb`: 10 s after the last event of a view that plays.
                heartbeat_ms=10_000,
                first_number=1,
                counts_itself=True,
                latency_by_clock=True,
            ),
            Source(
                "cmcd",
                Ordering.NUMBER,
                # The default interval of event `t` (CTA-5004-B).
                heartbeat_ms=30_000,
                first_number=0,
                has_plays=True,
                names_session=True,
                takes_back=True,
                session_counters=frozenset({"rebuffer_count", "rebuffer_ms", "dropped_frames"}),
            ),
            # The web SDK's own default; it does not use the interval that the collector answers.
            Source("epas", Ordering.TIME, heartbeat_ms=30_000, names_session=True, takes_back=True),
            # The lines of docs/clients.md. Numbers show what is missing; they do not order.
            Source("native", Ordering.TIME, heartbeat_ms=10_000, first_number=1, takes_back=True),
        )
    }
)

#: The client whose view ids are those of sessions with several plays.
SESSION_SOURCE: Final = next(source.name for source in SOURCES.values() if source.has_plays)
