"""The input and result of `elapsed`: the time between two timed beacons by each witness, and the part of it that counts. Times in
ms."""

from typing import NamedTuple


class Elapsed(NamedTuple):
    """The time between two timed beacons."""

    elapsed_ms: int
    gap_ms: int = 0
    is_step: bool = False
    #: A silence that may turn out to hold a gap, and that gap; 0: none.
    quiet_ms: int = 0
    later_gap_ms: int = 0
    #: The server's clock alone says so: it is too long by as much as the request was slow.
    by_server: bool = False


class Times(NamedTuple):
    """The time between two timed beacons by each witness: client, server, playhead, and the playhead at its rate."""

    client_ms: int
    server_ms: int
    shown_ms: int | None
    played_ms: int | None


class Between(NamedTuple):
    """The state between two timed beacons: whether it plays, waits to play, and counts at all."""

    is_playing: bool
    is_waiting: bool
    is_counting: bool
