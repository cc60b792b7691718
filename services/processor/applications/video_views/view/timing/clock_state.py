"""The stored state of a view's time. Times in ms; corrected time is the client's time with every step of its clock taken out."""

import msgspec


class First(msgspec.Struct, array_like=True, gc=False):
    """The first timed beacon of a view: what identifies it, and the copy of it that was received first."""

    seq: int
    tie: int
    at_ms: int
    recv_ms: int
    server_ms: int


class Level(msgspec.Struct, array_like=True, gc=False):
    """Beacons in a row with one delay: corrected time to server time, ms."""

    since_ms: int
    least_ms: int
    most_ms: int
    count: int = 1
    is_known: bool = False
    #: Of a level above the usual one: whether the state before it counted.
    was_counting: bool = False
    #: When the first of them was received.
    since_recv_ms: int = 0
    is_sure: bool = False


class Latest(msgspec.Struct, array_like=True, gc=False):
    """The beacon that the server's clock puts last, of those that end the view so far."""

    server_ms: int
    recv_ms: int


class Clock(msgspec.Struct, array_like=True, gc=False):
    """What is known of a view's time after its last timed beacon."""

    first: First | None = None
    #: The smallest delay so far, of a client without send times; the level above it, if the newest beacons are on one.
    usual: Level | None = None
    late: Level | None = None
    #: What to add to client times now to get corrected times.
    shift_ms: int = 0
    #: Of the last timed beacon: its playhead.
    playhead_ms: int | None = None
    #: It says that the device sleeps now.
    sleeps: bool = False
    is_live: bool = False
    step_count: int = 0
    gap_ms: int = 0
    gap_count: int = 0
    #: The gaps before the view played, and before the content's first frame, each whole.
    gap_ms_before_play: int = 0
    gap_ms_before_content: int = 0
    #: Since the last timed beacon: corrected time of the last sign of life, and the longest stretch without one.
    heard_ms: int = 0
    quiet_ms: int = 0
    #: Corrected time of the last heartbeat (0: none), and the first intervals between two.
    heartbeat_ms: int = 0
    intervals: list[int] = []
    #: The interval of heartbeats that the client declares; 0: none.
    declared_ms: int = 0
    #: Beacons were received long before those that the client's time puts before them: that order is wrong.
    is_out_of_order: bool = False
    #: Untimed beacons so far, up to `SIGNS_MIN`: reports of requests.
    sign_count: int = 0
    #: The usual delay for beacons like the last timed one.
    usual_ms: int = 0
    #: How far the playhead went when its rate was last measured, and in what time; the same of the time before. 0: never.
    advanced_ms: int = 0
    advanced_in_ms: int = 0
    before_ms: int = 0
    before_in_ms: int = 0
    #: Of the timed beacon that the server's clock puts last: its time on that clock, and of receipt.
    latest_server_ms: int = 0
    latest_recv_ms: int = 0
    latest_end: Latest | None = None
    #: The delay of the last beacon, where that is too small to be usual.
    early: Level | None = None
    #: The delay of the first beacon is known to be the usual one.
    is_usual_at_first: bool = False
    #: The corrected time of the last timed beacon, where that may be too late by as much as its request was slow. 0: it is not.
    ahead_at_ms: int = 0
    #: What corrected time leapt over where it showed that the clock had been set back some beacons before. It counts to no state.
    set_back_ms: int = 0
