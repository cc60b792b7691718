"""Step: the meaning of one beacon, in the terms of the view's row, the same for every client.

`sources` makes one from a beacon. `by_number` and `by_time` put steps in order, and `progress` folds them.
"""

from typing import Any, Final

import msgspec

from shared.requests.request import Request

STARTING: Final = 1
PLAYING: Final = 2
PAUSED: Final = 3
REBUFFERING: Final = 4
SEEKING: Final = 5
ENDED: Final = 6
FAILED: Final = 7
#: The state goes back to the one before the seek.
BEFORE_SEEK: Final = 8
#: The viewer wants to watch: starting, until something plays.
WANTED: Final = 9
#: A stall is over: playing, where anything has played before, else starting.
STALL_OVER: Final = 10

#: How a view ends, as bits: the video was played to its end; the player was closed.
PLAYED_OUT: Final = 1
CLEAN_EXIT: Final = 2

#: What a step says of ads.
AD_BREAK_BEGINS: Final = 1
AD_BREAK_ENDS: Final = 2
AD_ATTEMPTED: Final = 3
AD_PLAYING: Final = 4
AD_PAUSED: Final = 5
AD_ENDED: Final = 6
AD_FAILED: Final = 7

#: Whether the customer's server signed the view; of a view that has both, one beacon without a signature decides.
SIGNED: Final = 1
NOT_SIGNED: Final = 2

#: Of `Step.counts_session`: the counters are the view's own.
COUNTS_VIEW: Final = False

#: Among dimensions: those that the collector derived, by field of the view's row.
DERIVED: Final = "derived"


class Failure(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A fatal error as the client reported it."""

    code: str | None = None
    message: str | None = None
    context: str | None = None
    severity: str | None = None
    business: bool = False


class Head(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first fields of a step: to read these alone of a stored one costs a fraction of the whole."""

    #: The client's sequence number; 0 where it has none. Of sources put in order by time it shows gaps alone.
    seq: int
    #: The client's clock, ms since 1970.
    at_ms: int
    #: The collector's clock when it received the beacon, and the beacon's time on that clock as its request showed it.
    recv_ms: int = 0
    server_ms: int = 0
    #: What to add to client times to get server times, as this beacon's request showed it.
    clock_offset_ms: int | None = None


class Step(Head, frozen=True, array_like=True, gc=False):
    """One beacon's meaning. None, 0 and empty mean unchanged.

    Fields that most beacons give come first, and in the order in which they are given: that makes a step cheaper to build.
    """

    #: Whether its request says when it was sent.
    is_stamped: bool = False
    #: The position in the video, ms; None where the beacon does not give it.
    playhead: int | None = None
    #: The client's own counters, by field of the view's row.
    counters: dict[str, Any] = {}
    #: Whether the counters may have begun before the view.
    counts_session: bool = False
    #: What the view is, by field of the view's row.
    dimensions: dict[str, Any] = {}
    #: It shows that something played, by its time at the latest (`reported_ms`, where that is given).
    shows_playing: bool = False
    #: The interval of heartbeats that the client promises; 0: none, or not given.
    heartbeat_ms: int = 0
    #: The state after it; 0: as before.
    state: int = 0
    #: The client's clock when it sent it; `at_ms` but for requests, which are reported at their end. 0: not given.
    reported_ms: int = 0
    bitrate_bps: int = 0
    #: Whether what follows an error decides if it was fatal; and whether the step gives the player's state.
    judges_errors: bool = False
    reports_state: bool = False
    is_heartbeat: bool = False
    #: Where there is no sequence number: identifies and orders what happened in one millisecond, from the content alone.
    tie: int = 0
    #: Whether it shows that a view has begun.
    begins: bool = False
    #: 0, PLAYED_OUT or CLEAN_EXIT.
    ends: int = 0
    #: Whether its time takes part in integrating states (the time of some beacons is that of something else).
    is_timed: bool = True
    is_rendition: bool = False
    failure: Failure | None = None
    ad: int = 0
    request: Request | None = None
    #: How far what is shown is behind the live edge; None: not given.
    latency_ms: int | None = None
    #: Sizes in pixels that changed: player_width, player_height, source_width, source_height.
    sizes: dict[str, int] = {}
    #: An error that the client does not call fatal: it is, if nothing plays after it.
    is_error: bool = False
    #: It is the beacon of a first frame: the player begins to play, or goes on.
    is_first_frame: bool = False
    #: Stalls that are over, where the client reports each once: how many, and how long they lasted together.
    stall_count: int = 0
    stall_ms: int = 0
    #: What the client itself calls a warning: it stands in the timeline, and changes nothing.
    is_warning: bool = False
    #: The device sleeps from now on.
    sleeps: bool = False
    #: A seek begins or ends: the playhead is not where playing brought it.
    moves_playhead: bool = False
    #: It is the client's report of an error, not only a beacon of a player that has failed; a request that gives its code.
    reports_error: bool = False
    #: What to add to its times for its place among those of its session: the client's clock was set back before it, or forward.
    shift_ms: int = 0
    #: The program time that is shown, on the server's clock: latency is measured by the client's clock then. 0: not given.
    program_ms: int = 0
    #: SIGNED or NOT_SIGNED; 0: the customer does not sign its views.
    signature: int = 0
    #: Of its client the delays of a view's requests are not compared: that of the first one counts for all.
    trusts_first: bool = False
