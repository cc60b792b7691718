"""The beacon: one event of one view, as a player reported it. The value of topic `beacons`."""

import re
from typing import Any, Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1

#: What a customer id may be. It holds no `:`, so `<customer>:<view id>` is unambiguous.
CUSTOMER_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
VIEW_ID_CHARS_MAX: Final = 64
#: Sequence numbers are 0 to this: a beacon with another one is of no view.
SEQ_MAX: Final = 1 << 31

SourceName = Literal["mux", "cmcd", "epas", "native"]

#: Canonical event names; what each client calls them is in its intake module.
Event = Literal[
    "viewstart",
    "play",
    "playing",
    "pause",
    "rebufferstart",
    "rebufferend",
    "seekstart",
    "seekend",
    "rendition",
    "request",
    "error",
    "warning",
    "heartbeat",
    "ended",
    "viewend",
    "ad",
    "background",
    "custom",
]


class Beacon(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """One event of one view. It holds JSON values alone, so no reference cycle: the garbage collector need not look at it.

    `attrs` holds what the client sent beyond the fields here, under the client's own full names (`view_watch_time` for
    mux, `br` for cmcd); a missing name means unchanged, since some clients send only what changed. Client times
    measure and never control; `recv_time_ms` is the collector's clock.
    """

    #: Always given and always written: an omitted value could not be distinguished from a later version's default.
    schema_version: int
    source: SourceName
    customer_id: str
    view_id: str
    event: str
    source_event: str
    recv_time_ms: int
    #: The client's clock at the event, ms since 1970.
    client_time_ms: int
    #: The client's sequence number in the view; None where the client has none.
    seq: int | None = None
    player_seq: int | None = None
    #: The client's clock when it sent the batch, ms since 1970.
    sent_time_ms: int | None = None
    #: Round trip of the client's previous request, ms.
    rtt_ms: int | None = None
    #: What to add to a client time to get server time, ms: receive time - send time. If the client sends no send time, the
    #: latest client time in the request stands for it (docs/view.md, where its clock is set back within the request).
    clock_offset_ms: int | None = None
    playhead_ms: int | None = None
    #: Whether the beacon carries every field of the view, not only the changed ones.
    full_snapshot: bool = False
    attrs: dict[str, Any] = {}
    ip_trunc: str | None = None
    user_agent: str | None = None
    #: From the user agent: families (`Chrome`, `Windows`, `Roku`), without versions. Bots are flagged, not dropped.
    browser: str | None = None
    os: str | None = None
    device: str | None = None
    is_bot: bool = False
    #: Where the address is: ISO 3166-1 code, number of the autonomous system.
    country: str | None = None
    asn: int | None = None
    #: Whether the request had a valid token for the view; None where the customer does not sign its views.
    signed: bool | None = None
    #: The write key that it came under; None where that is the customer's id. For those who look for their own beacons.
    write_key: str | None = None
    #: The collector and the request that received it: for tracing only, never to recognize duplicates.
    collector_id: str | None = None
    batch_id: str | None = None
