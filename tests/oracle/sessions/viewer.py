"""Simulated viewers: what happens on a page, by a clock that is right. Pure and seeded.

A session is one page. It holds one or two plays, and what disturbs them: a sleeping device, and a device clock that is set.
The clients' modules turn a session into requests; nothing here knows what is sent.
"""

import uuid
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final, Literal, NamedTuple

Client = Literal["mux", "hls.js", "dash.js", "shaka", "reporter", "epas", "native", "native-unnumbered"]
CLIENTS: Final[tuple[Client, ...]] = (
    "mux",
    "hls.js",
    "native",
    "dash.js",
    "epas",
    "mux",
    "reporter",
    "shaka",
    "mux",
    "native-unnumbered",
)
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60 * SECOND_MS
LADDER_BPS: Final = (400_000, 900_000, 1_800_000, 3_200_000, 6_000_000)
#: By how much clocks are set.
STEPS_MS: Final = (*(minutes * MINUTE_MS for minutes in (-60, -15, -1, 1, 45, 300)), -25_000, -12_000, 10_000, 20_000)
#: Clients that report ads.
WITH_ADS: Final = frozenset({"mux", "reporter", "native", "native-unnumbered"})


class Moment(NamedTuple):
    """One thing that happens, `at_ms` after the page was loaded."""

    at_ms: int
    kind: str
    #: rendition: bps. seeked: playhead, ms. rate: percent. step: what is added to the device's clock, ms.
    number: int = 0
    #: error, warning: the code.
    text: str = ""


@dataclass(frozen=True, slots=True)
class Play:
    """One attempt to play one video."""

    view_id: str
    video_id: str
    live: bool
    bitrate_bps: int
    moments: tuple[Moment, ...]

    @property
    def ends_ms(self) -> int:
        """When the last thing happens."""
        return self.moments[-1].at_ms


@dataclass(frozen=True, slots=True)
class Session:
    """One page of one viewer."""

    number: int
    client: Client
    id: str
    plays: tuple[Play, ...]
    #: What the device's clock shows beyond the right time.
    skew_ms: int
    reports_requests: bool
    #: Chances of the network: of a request that is lost, sent twice, delayed for long.
    losses: float
    resends: float
    disorder: float
    #: From when to when a collector keeps requests in its spool; empty where it does not.
    spool: tuple[int, int] = (0, 0)
    habits: frozenset[str] = field(default_factory=frozenset)

    #: Where the device's clock is set, and by how much; where the device sleeps, from when to when.
    steps: tuple[tuple[int, int], ...] = ()
    sleeps: tuple[tuple[int, int], ...] = ()

    def clock_ms(self, at_ms: int) -> int:
        """What the device's clock shows at a time, as ms after the right time at which the page was loaded."""
        return at_ms + self.skew_ms + sum(by_ms for step_ms, by_ms in self.steps if step_ms <= at_ms)

    def awake_ms(self, at_ms: int) -> int:
        """A time, or the end of the sleep that it falls into."""
        return next((wakes_ms for sleeps_ms, wakes_ms in self.sleeps if sleeps_ms <= at_ms < wakes_ms), at_ms)


def session(seed: int, number: int) -> Session:
    """Session `number` of the run with this seed. Equal arguments give equal sessions."""
    rng = Random(f"{seed}/{number}")
    client = CLIENTS[number % len(CLIENTS)]
    calm = rng.random() < 0.4
    session_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    plays, at_ms = [], 0
    for position in range(1 if rng.random() < 0.75 else 2):
        view_id = session_id if position == 0 or (client not in ("mux", "epas") and "native" not in client) else ""
        view_id = view_id or str(uuid.UUID(int=rng.getrandbits(128), version=4))
        plays.append(_play(rng, client, view_id, f"film-{position}-{rng.randint(1, 9)}", at_ms, calm=calm))
        at_ms = plays[-1].ends_ms + rng.randint(500, 20_000)
    moments = [moment for play in plays for moment in play.moments]
    spools = not calm and rng.random() < 0.15
    spool_ms = rng.randint(0, at_ms) if spools else 0
    return Session(
        number=number,
        client=client,
        id=session_id,
        plays=tuple(plays),
        skew_ms=rng.choice((0, 0, 0, -700, 5_300, -9 * 60 * MINUTE_MS)),
        reports_requests=rng.random() < 0.3,
        losses=0.0 if calm or rng.random() < 0.5 else rng.choice((0.03, 0.15, 0.4)),
        resends=0.0 if calm else rng.choice((0.0, 0.1, 0.3)),
        disorder=0.0 if calm else rng.choice((0.0, 0.2, 0.6)),
        spool=(spool_ms, spool_ms + rng.randint(5 * SECOND_MS, 10 * MINUTE_MS)) if spools else (0, 0),
        habits=frozenset(
            habit for habit in ("pt", "dfa", "ltc", "h", "bsd", "cid", "pb", "msd", "total") if rng.random() < 0.6
        ),
        steps=tuple((moment.at_ms, moment.number) for moment in moments if moment.kind == "step"),
        sleeps=tuple((one.at_ms, after.at_ms) for one, after in pairwise(moments) if one.kind == "sleep"),
    )


def _play(rng: Random, client: Client, view_id: str, video_id: str, at_ms: int, *, calm: bool) -> Play:
    writer = _Writer(rng, client, at_ms, calm=calm)
    writer.write()
    return Play(
        view_id=view_id,
        video_id=video_id,
        live=rng.random() < 0.25,
        bitrate_bps=rng.choice(LADDER_BPS),
        moments=tuple(writer.moments),
    )


class _Writer:
    """Writes the moments of one play, in order; each has a time of its own."""

    def __init__(self, rng: Random, client: Client, at_ms: int, *, calm: bool) -> None:
        self.moments: list[Moment] = []
        self._rng = rng
        self._client = client
        self._at_ms = at_ms
        self._calm = calm

    def _after(self, low_ms: int, high_ms: int, kind: str, number: int = 0, text: str = "") -> None:
        self._at_ms += self._rng.randint(low_ms, high_ms)
        self.moments.append(Moment(self._at_ms, kind, number, text))

    def write(self) -> None:
        """Load, start, what happens while it plays, an end."""
        rng = self._rng
        self._after(0, 500, "load")
        if rng.random() < 0.04:
            self._after(1_000, 40_000, "close")
            return
        self._after(20, 3_000, "start")
        fate = rng.random()
        if fate < 0.06:
            self._after(100, 30_000, rng.choice(("close", "crash")))
            return
        if fate < 0.12:
            self._after(100, 9_000, "error", text=str(rng.randint(1, 40)))
            self._after(100, 20_000, rng.choice(("close", "crash")))
            return
        if self._client in WITH_ADS and rng.random() < 0.25:
            self._ads()
        if not self._calm and rng.random() < 0.04:
            self._after(1, 500, "sleep")
            self._after(6 * MINUTE_MS, 40 * MINUTE_MS, "wake")
        self._after(50, 6_000, "playing")
        for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 8, 14))):
            self._incident()
        self._end()

    def _incident(self) -> None:
        rng = self._rng
        self._after(800, 25_000 if rng.random() < 0.85 else 240_000, "tick")
        disturbances = [] if self._calm else ["sleep", "step"]
        kinds = [
            "stall",
            "stall",
            "seek",
            "pause",
            "rendition",
            "rendition",
            "rate",
            "warning",
            "seek-stall",
            "pause-seek",
        ]
        match rng.choice([*kinds, *disturbances, *(["ads"] if self._client in WITH_ADS else [])]):
            case "stall":
                self._after(1, 500, "stall")
                self._after(60, 9_000, "unstall")
            case "seek":
                self._seek(SECOND_MS)
            case "seek-stall":
                self._after(1, 500, "stall")
                self._seek(SECOND_MS)
                self._after(10, 700, "playing")
            case "pause":
                self._after(1, 500, "pause")
                self._after(500, 60_000 if rng.random() < 0.9 else 30 * MINUTE_MS, "resume")
            case "pause-seek":
                self._after(1, 500, "pause")
                self._seek(20 * SECOND_MS)
                self._after(300, 30_000, "resume")
            case "rendition":
                self._after(1, 500, "rendition", rng.choice(LADDER_BPS))
            case "rate":
                self._after(1, 500, "rate", rng.choice((50, 100, 150, 200)))
            case "warning":
                self._after(1, 500, "warning", text=str(rng.randint(1, 40)))
            case "sleep":
                self._after(1, 500, "sleep")
                self._after(2 * MINUTE_MS, 40 * MINUTE_MS, "wake")
            case "step":
                self._after(1, 500, "step", rng.choice(STEPS_MS) + rng.randint(-999, 999))
            case "ads":
                self._ads()
                self._after(10, 900, "playing")

    def _seek(self, longest_ms: int) -> None:
        self._after(1, 500, "seek")
        began_ms = self._at_ms
        self._after(40, longest_ms, "seeked", self._rng.randint(0, 90 * MINUTE_MS))
        if began_ms % 4 == 0:
            # The player waits for what was sought, and says so.
            self.moments.insert(-1, Moment((began_ms + self._at_ms) // 2, "stall"))

    def _ads(self) -> None:
        rng = self._rng
        self._after(1, 300, "adbreakstart")
        for _ in range(rng.choice((1, 1, 2))):
            self._after(1, 200, "adplay")
            if rng.random() < 0.15:
                self._after(20, 900, "aderror")
                continue
            self._after(20, 900, "adplaying")
            if rng.random() < 0.2:
                self._after(500, 9_000, "adpause")
                self._after(500, 9_000, "adresume")
            self._after(900, 20_000, "adended")
        self._after(1, 100, "adbreakend")

    def _end(self) -> None:
        rng = self._rng
        self._after(800, 15_000, "tick")
        match rng.choice(
            ("ended", "ended", "ended", "leave", "leave", "crash", "error", "stalled", "seeking", "paused")
        ):
            case "ended":
                self._after(1, 500, "ended")
                self._after(50, 9_000, rng.choice(("close", "close", "crash")))
            case "leave":
                self._after(1, 500, "close")
            case "crash":
                self._after(1, 500, "crash")
            case "error":
                self._after(1, 500, "error", text=str(rng.randint(1, 40)))
                self._after(50, 90_000, rng.choice(("close", "crash")))
            case "stalled":
                self._after(1, 500, "stall")
                self._after(500, 400_000 if rng.random() < 0.2 else 20_000, rng.choice(("close", "crash")))
            case "seeking":
                self._after(1, 500, "seek")
                self._after(100, 9_000, rng.choice(("close", "crash")))
            case "paused":
                self._after(1, 500, "pause")
                self._after(100, 9 * MINUTE_MS, rng.choice(("close", "crash")))
