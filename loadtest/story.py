"""The story of each simulated view, made in advance: a pure, seeded timeline of one viewer at one player.

A story is the truth of a load test. The wire modules (`mux`, `cmcd`) turn it into beacons, `tally` measures it, and neither knows
how the processor folds beacons into rows. All times are whole ms since the page was loaded, so that the truth is exact; every
moment has its own time, so a time alone determines what has happened by then.
"""

import uuid
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final, Literal, Protocol

Kind = Literal[
    "load",
    "start",
    "playing",
    "pause",
    "resume",
    "rebufferstart",
    "rebufferend",
    "seekstart",
    "seekend",
    "rendition",
    "warning",
    "error",
    "ended",
    "close",
    "crash",
]
Client = Literal["mux-embed", "hls.js", "dash.js", "cmcd-reporter"]
Plot = Literal[
    "watched", "abandoned", "crashed", "startup_failure", "playback_failure", "left_before_start", "page_load"
]

VIEW_MS_MIN: Final = 8_000
VIEW_MS_MAX: Final = 45_000
#: The last view is over this long before the run is, so that its last POSTs are answered within it.
TAIL_MS: Final = 3_000

CUSTOMERS: Final = ("acme", "globex", "initech")
CLIENTS: Final[tuple[tuple[Client, float], ...]] = (
    ("mux-embed", 0.70),
    ("hls.js", 0.12),
    ("dash.js", 0.09),
    ("cmcd-reporter", 0.09),
)
PLOTS: Final[tuple[tuple[Plot, float], ...]] = (
    ("watched", 0.52),
    ("abandoned", 0.17),
    ("crashed", 0.08),
    ("startup_failure", 0.05),
    ("playback_failure", 0.06),
    ("left_before_start", 0.06),
    ("page_load", 0.06),
)
LADDER_BPS: Final = (400_000, 900_000, 1_800_000, 3_200_000, 6_000_000)
#: What a player reports that the incident made give up; no other one does.
GAVE_UP_CODE: Final = "4100"
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happens, `at_ms` after the page was loaded; the fields a kind has no use for stay at their default."""

    at_ms: int
    kind: Kind
    #: rendition: the bitrate from here on.
    bitrate_bps: int = 0
    #: seekend: where playback goes on.
    playhead_ms: int = 0
    #: warning, error: what the player reports.
    code: str = ""
    business_exception: bool = False


@dataclass(frozen=True, slots=True)
class Network:
    """Whose addresses a viewer has: `addresses` are the first three bytes of IPv4."""

    asn: int
    country: str
    addresses: str


@dataclass(frozen=True, slots=True)
class Device:
    """What a viewer watches on: what its browser sends, and what is known from that. None: the User-Agent does not say."""

    user_agent: str
    #: As mux-embed names it.
    category: str
    name: str | None
    os: str
    browser: str


@dataclass(frozen=True, slots=True)
class Player:
    """Who watches what with which client, and that client's habits. None of it changes during the view."""

    customer_id: str
    view_id: str
    client: Client
    viewer_id: str
    video_id: str
    live: bool
    cdn: str
    name: str
    #: Where playback begins: 0 for VOD, the live edge for live.
    playhead_start_ms: int
    bitrate_start_bps: int
    #: What the player's clock shows beyond the right time.
    clock_skew_ms: int
    #: CMCD: beacons in a POST.
    batch_size: int
    #: Whether the client reports its media requests, one for each segment of `SEGMENT_MS`.
    reports_requests: bool
    #: Whether a closing page sends its last beacons twice (sendBeacon and fetch).
    closes_twice: bool
    #: How likely a POST is sent again, as it is, after its answer.
    resend_share: float
    #: Of a run with an incident: the network, the last byte of the address, the device, and the version where the client has one.
    network: Network | None = None
    host: int = 0
    device: Device | None = None
    version: str | None = None
    #: Where the incident hits: playback stalls again and again from then on, ms since the page was loaded.
    stalls_from_ms: int | None = None

    @property
    def address(self) -> str | None:
        """The viewer's address; None without a network."""
        return f"{self.network.addresses}.{self.host}" if self.network is not None else None

    @property
    def source(self) -> Literal["mux", "cmcd"]:
        """The source as the row names it."""
        return "mux" if self.client == "mux-embed" else "cmcd"

    @property
    def title(self) -> str:
        """The video's title."""
        return self.video_id.replace("-", " ").title()

    @property
    def marks_its_end(self) -> bool:
        """Whether the client reports a closing page; hls.js and dash.js send nothing then."""
        return self.client in ("mux-embed", "cmcd-reporter")


@dataclass(frozen=True, slots=True)
class Story:
    """One view from page load to its end: when it comes (ms since the run began), and all its moments in order."""

    player: Player
    arrives_ms: int
    moments: tuple[Moment, ...] = field(default=())

    @property
    def ends_ms(self) -> int:
        """When the player is over, ms since the run began."""
        return self.arrives_ms + self.moments[-1].at_ms

    def first(self, kind: Kind) -> Moment | None:
        """The first moment of this kind."""
        return next((moment for moment in self.moments if moment.kind == kind), None)


class Afflicts(Protocol):
    """An incident (`loadtest.incident`)."""

    @property
    def from_ms(self) -> int:
        """When it begins, ms since the run began."""

    def placed(self, player: Player, rng: Random) -> Player:
        """A player with a network, a device and a version."""

    def hits(self, player: Player) -> bool:
        """Whether it hits a player who was placed."""


def story_of(seed: int, number: int, seconds: int, incident: Afflicts | None = None) -> Story:
    """Story `number` of the run with this seed; all of it happens within `seconds`. Equal arguments, equal story.

    An incident changes the stories of those whom it hits, and no others'.
    """
    rng = Random(f"{seed}/{number}")
    room_ms = seconds * 1_000 - TAIL_MS
    if room_ms < VIEW_MS_MIN:
        raise ValueError(f"a run needs at least {(VIEW_MS_MIN + TAIL_MS) // 1_000} s, not {seconds}")
    player = _player(rng)
    length_ms = rng.randint(VIEW_MS_MIN, min(VIEW_MS_MAX, room_ms))
    plot = rng.choices([name for name, _ in PLOTS], [share for _, share in PLOTS])[0]
    moments = _moments(rng, player, plot, length_ms)
    arrives_ms = rng.randint(0, room_ms - moments[-1].at_ms)
    if incident is not None:
        player = incident.placed(player, Random(f"{seed}/{number}/place"))
        if (
            incident.hits(player)
            and moments[-1].at_ms >= VIEW_MS_MIN
            and arrives_ms + moments[-1].at_ms > incident.from_ms
        ):
            player = replace(player, stalls_from_ms=max(0, incident.from_ms - arrives_ms))
            # A viewer who is there then stalls until the player gives up. The view stays as long, so that the run ends in time.
            plot = "playback_failure"
            moments = _moments(Random(f"{seed}/{number}/incident"), player, plot, moments[-1].at_ms)
    return Story(player, arrives_ms, moments)


def _player(rng: Random) -> Player:
    client = rng.choices([name for name, _ in CLIENTS], [share for _, share in CLIENTS])[0]
    live = rng.random() < 0.3
    skewed = rng.random() < 0.15
    return Player(
        customer_id=rng.choices(CUSTOMERS, (5, 3, 2))[0],
        view_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        client=client,
        viewer_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        video_id=f"{'channel' if live else 'movie'}-{rng.randint(1, 12)}",
        live=live,
        cdn=rng.choice(("fastly", "akamai", "cloudfront")),
        name=rng.choice(("main", "embed", "tv")),
        playhead_start_ms=rng.randint(_HOUR_MS, 6 * _HOUR_MS) if live else 0,
        bitrate_start_bps=rng.choice(LADDER_BPS),
        clock_skew_ms=rng.randint(-9 * _HOUR_MS, 9 * _HOUR_MS) if skewed else 0,
        batch_size=rng.choice((1, 5)),
        reports_requests=rng.random() < 0.5,
        closes_twice=rng.random() < 0.7,
        resend_share=0.25 if rng.random() < 0.2 else 0.0,
    )


def _moments(rng: Random, player: Player, plot: Plot, length_ms: int) -> tuple[Moment, ...]:
    """The plot as moments, in order and at most `length_ms` long."""
    load = Moment(0, "load")
    if plot == "page_load":
        return load, Moment(min(length_ms, rng.randint(2_000, 14_000)), _leaving(rng, 0.5))
    start = Moment(rng.randint(100, 1_500), "start")
    if plot == "left_before_start":
        return load, start, Moment(start.at_ms + rng.randint(300, 5_000), "close")
    if plot == "startup_failure":
        error = _error(rng, player, start.at_ms + rng.randint(200, 4_000))
        return load, start, error, Moment(error.at_ms + rng.randint(300, 2_000), _leaving(rng, 0.7))
    playing = Moment(start.at_ms + rng.randint(150, 3_000), "playing")
    moments = [load, start, playing]
    if plot in ("abandoned", "crashed"):
        # The page closes at any moment.
        incidents = _incidents(rng, player, playing.at_ms, length_ms)
        moments += [moment for incident in incidents for moment in incident if moment.at_ms < length_ms]
        return (*moments, Moment(length_ms, "close" if plot == "abandoned" else "crash"))
    end_ms = length_ms - rng.randint(300, 1_500)
    incidents = _incidents(rng, player, playing.at_ms, end_ms)
    moments += [moment for incident in incidents if incident[-1].at_ms < end_ms for moment in incident]
    moments.append(Moment(end_ms, "ended") if plot == "watched" else _error(rng, player, end_ms))
    return (*moments, Moment(length_ms, _leaving(rng, 0.85 if plot == "watched" else 0.6)))


def _leaving(rng: Random, clean_share: float) -> Kind:
    return "close" if rng.random() < clean_share else "crash"


def _error(rng: Random, player: Player, at_ms: int) -> Moment:
    """A fatal error; only mux can mark one as a business exception."""
    is_hit = player.stalls_from_ms is not None
    business = player.source == "mux" and rng.random() < 0.15 and not is_hit
    code = str(rng.choice((1002, 2003, 2004, 3016)))
    return Moment(at_ms, "error", code=GAVE_UP_CODE if is_hit else code, business_exception=business)


def _incidents(rng: Random, player: Player, from_ms: int, until_ms: int) -> list[tuple[Moment, ...]]:
    """What happens during playback, each incident whole (it may reach beyond `until_ms`), playing before and after it."""
    incidents: list[tuple[Moment, ...]] = []
    at_ms = from_ms
    while (at_ms := at_ms + rng.randint(1_200, 6_000)) < until_ms:
        incident = _incident(rng, player, at_ms)
        incidents.append(incident)
        at_ms = incident[-1].at_ms
    return incidents


def _incident(rng: Random, player: Player, at_ms: int) -> tuple[Moment, ...]:
    # dash.js does not report a switch (it has no `bc`), so its viewers keep to one rendition.
    renditions = 0 if player.client == "dash.js" else 6
    kind = rng.choices(("rebuffer", "seek", "pause", "rendition", "warning"), (5, 4, 3, renditions, 1))[0]
    if player.stalls_from_ms is not None and at_ms >= player.stalls_from_ms:
        return Moment(at_ms, "rebufferstart"), Moment(at_ms + rng.randint(3_000, 8_000), "rebufferend")
    if kind == "rebuffer":
        return Moment(at_ms, "rebufferstart"), Moment(at_ms + rng.randint(250, 3_000), "rebufferend")
    if kind == "seek":
        target_ms = player.playhead_start_ms + rng.randint(0, 600_000) * (-1 if player.live else 1)
        return Moment(at_ms, "seekstart"), Moment(at_ms + rng.randint(60, 900), "seekend", playhead_ms=target_ms)
    if kind == "pause":
        return Moment(at_ms, "pause"), Moment(at_ms + rng.randint(500, 7_000), "resume")
    if kind == "rendition":
        return (Moment(at_ms, "rendition", bitrate_bps=rng.choice(LADDER_BPS)),)
    return (Moment(at_ms, "warning", code=str(rng.choice((101, 102)))),)
