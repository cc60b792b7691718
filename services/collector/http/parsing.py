"""Parsing: makes a request's body into records, small bodies on the event loop, others in turns on a thread.

One body at a time is decompressed and parsed on the thread. Its parsed form, many times its size, is freed before any other wait.
Decompressed bytes count as in flight before they are parsed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, NamedTuple

from services.collector.http.admission import Admission, Demand, address_of, demand_of
from services.collector.http.bodies import RetryLater
from services.collector.http.limits import Share
from services.collector.http.turns import TooManyWaiting, Turns
from services.collector.intake.body import small, unpacked_bytes_max
from services.collector.intake.post import Outcome, ParsedBody, Post, Rejected, Rules
from services.collector.sink.records import Headers, Record, records_of, size_of
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_UNSTORED
from shared.topics import Profile

Parse = Callable[[Post, Rules], ParsedBody]

#: What requests are counted by: the clients of beacons, and the other inputs.
Source = Literal["mux", "cmcd", "epas", "native", "otlp", "api"]

#: Bodies of so many bytes, unpacked, are read on the event loop: even a hostile one takes a few ms. Larger ones take turns
#: on a thread. Of what clients send nearly all is smaller.
INLINE_BYTES: Final[dict[Source, int]] = {
    "mux": 32_768,
    "epas": 32_768,
    "cmcd": 16_384,
    "native": 16_384,
    "otlp": 16_384,
    "api": 2_048,
}
#: CPU time that a good input takes at the most, and a byte of a body, in seconds. What takes longer is waste.
_INPUT_SECONDS: Final[dict[Source, float]] = {
    "mux": 50e-6,
    "epas": 100e-6,
    "cmcd": 50e-6,
    "native": 50e-6,
    "otlp": 100e-6,
    "api": 1e-3,
}
_BYTE_SECONDS: Final = 0.05e-6
_REQUEST_SECONDS: Final = 200e-6
#: Large bodies that wait for their turn: of one address, and of all.
LARGE_WAITING_BY_ADDRESS_MAX: Final = 8
LARGE_WAITING_MAX: Final = 256

#: Runs a function: here, or on a thread.
_Run = Callable[..., Awaitable[Any]]


class Input(NamedTuple):
    """A request to be parsed: its parser, what it is counted by, the rules, and the headers of its records."""

    post: Post
    parse: Parse
    source: Source
    rules: Rules
    headers: Headers
    #: How long it may be held back, in seconds.
    patience_seconds: float


class Ready(NamedTuple):
    """A request that was parsed: its records, and how long it is to be held back."""

    records: list[Record]
    rejected: list[Rejected]
    outcome: Outcome
    demand: Demand | None
    wait_seconds: float


async def _here(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class Parsing:
    """Parses requests within `admission`. `cpu_seconds` is the CPU time of the thread that calls it."""

    def __init__(self, admission: Admission, profile: Profile, cpu_seconds: Callable[[], float]) -> None:
        self._admission = admission
        self._profile = profile
        self._cpu_seconds = cpu_seconds
        self._turns = Turns(LARGE_WAITING_BY_ADDRESS_MAX, LARGE_WAITING_MAX)

    async def ready(self, given: Input, share: Share) -> Ready:
        """The request's records, within its customers' rates and the bytes in flight. Raises `RetryLater`."""
        post, rules = given.post, given.rules
        light = small(post, rules, INLINE_BYTES[given.source])
        if light is not None:
            if light.unpacked is not None:
                self._admission.hold(share, len(post.body) + len(light.unpacked))
            return await self._parsed(given._replace(post=light), share, _here)
        try:
            async with self._turns.turn(address_of(post.client)):
                self._admission.hold(share, len(post.body) + unpacked_bytes_max(post, rules))
                return await self._parsed(given, share, asyncio.to_thread)
        except TooManyWaiting:
            metrics.counter(COLLECTOR_UNSTORED).labels("waiting_turns").inc()
            raise RetryLater("busy") from None

    async def _parsed(self, given: Input, share: Share, run: _Run) -> Ready:
        post, rules, admission = given.post, given.rules, self._admission
        parsed, cpu_seconds = await run(self._timed, given)
        self._charge_waste(given, len(parsed.accepted), cpu_seconds)
        demand = demand_of(parsed, post, rules, cpu_seconds)
        wait = admission.take_rates(demand, given.patience_seconds)
        kept: list[Rejected] = []

        def keeps(rejected: Rejected) -> bool:
            is_kept = admission.keeps(rejected, rules)
            if is_kept:
                kept.append(rejected)
            return is_kept

        records = await run(records_of, parsed, post, self._profile, keeps, given.headers)
        admission.hold(share, len(post.body) + size_of(records))
        return Ready(records, kept, Outcome(len(parsed.accepted), parsed.rejected), demand, wait)

    def _timed(self, given: Input) -> tuple[ParsedBody, float]:
        """What the POST holds, and the CPU time in seconds that this thread took for it."""
        begun = self._cpu_seconds()
        parsed = given.parse(given.post, given.rules)
        return parsed, self._cpu_seconds() - begun

    def _charge_waste(self, given: Input, accepted: int, cpu_seconds: float) -> None:
        worth = _REQUEST_SECONDS + accepted * _INPUT_SECONDS[given.source] + len(given.post.body) * _BYTE_SECONDS
        if cpu_seconds > worth:
            self._admission.add_waste(address_of(given.post.client), cpu_seconds - worth)
