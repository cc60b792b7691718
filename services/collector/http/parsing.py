"""Parsing: makes a request's body into records, small bodies on the event loop, others in turns on a thread.

One body at a time is decompressed and parsed on the thread. Its parsed form, many times its size, is freed before any other wait.
Decompressed bytes count as in flight before they are parsed.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

import msgspec

from services.collector.admission.admission import Admission, Demand, party_of
from services.collector.admission.fair_queue import FairQueue, TooManyWaiting, WaitingLimits
from services.collector.admission.held import Share
from services.collector.admission.retry_later import RetryLater
from services.collector.intake.body import beginning, small, unpacked_bytes_max
from services.collector.intake.mux.names import key_in
from services.collector.intake.post import Outcome, ParsedBody, Post, Rejected, Rules, TooManyInvalid
from services.collector.intake.sender.customers import Found
from services.collector.intake.signatures import with_signatures
from services.collector.received.counting import Tallies, Tally
from services.collector.sink.records import Headers, Record, records_of, size_of
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_UNSTORED
from shared.schemas.beacon import SourceName
from shared.sources import SOURCES
from shared.topics import Profile

Parse = Callable[[Post, Rules], ParsedBody]

#: What requests are counted by: the clients of beacons, and the other inputs.
Source = Literal[SourceName, "otlp", "api"]

#: Bodies of so many bytes, unpacked, are parsed on the event loop: even a hostile one takes no more than about 3 ms. All
#: other bodies take turns on a thread. Of what clients send nearly all is inline.
INLINE_BYTES: Final[dict[Source, int]] = {
    "mux": 32_768,
    "epas": 32_768,
    "cmcd": 3_072,
    "native": 16_384,
    "otlp": 4_096,
    "api": 1_536,
}
#: Of an inline body: invalid inputs, and backslashes. Escapes are looked at one by one where some are halves of characters.
INLINE_INVALID_MAX: Final = 32
INLINE_ESCAPES_MAX: Final = 1_000
#: CPU time that a good input takes at the most, and a byte of a body, in seconds. What takes longer is waste.
_INPUT_SECONDS: Final[dict[Source, float]] = {
    "mux": 50e-6,
    "epas": 100e-6,
    "cmcd": 50e-6,
    "native": 50e-6,
    "otlp": 100e-6,
    "api": 1e-3,
}
BYTE_SECONDS: Final = 0.05e-6
REQUEST_SECONDS: Final = 200e-6
#: Bodies that wait for their turn.
WAITING: Final = WaitingLimits(by_address_max=16, by_customer_max=128, all_max=256)
#: Where a body's key is looked for, from its beginning on.
_KEY_WITHIN_BYTES: Final = 4_096

#: CPU time that a body may take on the thread before the event loop is preferred, in seconds. Nearly all good bodies take less.
UNPAUSED_SECONDS: Final = 0.02
#: From then on the thread sleeps so many times as long as it works, at the least after so much work.
_SLEEP_RATIO: Final = 3.0
_SLICE_SECONDS: Final = 0.001

#: What a request asks of its customers' rates, and how long it is to be held back.
_Taken = tuple[Demand | None, float]
#: Its records, and what of the rejected inputs is among them.
_Made = tuple[list[Record], list[Rejected]]


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
    tally: Tally


class Pauses:
    """The pauses of one body that is parsed on the thread. While it sleeps the event loop has the interpreter to itself.

    Make it on that thread: `cpu_seconds` is the clock of the thread that calls it.
    """

    def __init__(self, cpu_seconds: Callable[[], float], sleep: Callable[[float], None] = time.sleep) -> None:
        self._cpu_seconds = cpu_seconds
        self._sleep = sleep
        self._paused_at = cpu_seconds() + UNPAUSED_SECONDS

    def __call__(self) -> None:
        """Sleeps if the body has taken long enough since the last pause."""
        worked = self._cpu_seconds() - self._paused_at
        if worked >= _SLICE_SECONDS:
            self._sleep(worked * _SLEEP_RATIO)
            self._paused_at = self._cpu_seconds()


class Parsing:
    """Parses requests within `admission`. `cpu_seconds` is the CPU time of the thread that calls it."""

    def __init__(self, admission: Admission, profile: Profile, cpu_seconds: Callable[[], float]) -> None:
        self._admission = admission
        self._profile = profile
        self._cpu_seconds = cpu_seconds
        self._queue = FairQueue(WAITING, time.monotonic)
        self._tallies = Tallies()

    async def ready(self, given: Input, share: Share) -> Ready:
        """The request's records, within its customers' rates and the bytes in flight. Raises `RetryLater`."""
        post, rules = given.post, given.rules
        address = party_of(post.client.address)
        self._admission.check_waste(address)
        light = inline(post, given.source)
        if light is not None:
            if light.unpacked is not None:
                self._admission.hold(share, len(post.body) + len(light.unpacked))
            try:
                return self._parsed(Input(light, *given[1:]), share)
            except TooManyInvalid:
                pass
        try:
            async with self._queue.turn(customer_of(post, given.source, rules), address):
                self._admission.check_waste(address)
                self._admission.hold(share, len(post.body) + unpacked_bytes_max(post, rules))
                return await self._parsed_aside(given, share)
        except TooManyWaiting:
            metrics.counter(COLLECTOR_UNSTORED).labels("waiting_turns").inc()
            raise RetryLater("busy") from None

    def _parsed(self, given: Input, share: Share) -> Ready:
        """What the request holds, read here."""
        parsed, cpu_seconds = self._timed(given, given.post)
        taken = self._taken(given, parsed, cpu_seconds)
        return self._ready(given, share, parsed, self._records(given, parsed), taken)

    async def _parsed_aside(self, given: Input, share: Share) -> Ready:
        """What the request holds, read on a thread."""
        parsed, cpu_seconds = await asyncio.to_thread(self._timed_with_pauses, given)
        taken = self._taken(given, parsed, cpu_seconds)
        made = await asyncio.to_thread(self._records, given, parsed)
        return self._ready(given, share, parsed, made, taken)

    def _timed_with_pauses(self, given: Input) -> tuple[ParsedBody, float]:
        """As `_timed`, with pauses: they are measured by the clock of the thread that parses, which no other thread has."""
        return self._timed(given, msgspec.structs.replace(given.post, pause=Pauses(time.thread_time)))

    def _timed(self, given: Input, post: Post) -> tuple[ParsedBody, float]:
        """What the POST holds, and the CPU time in seconds that this thread took for it."""
        begun = self._cpu_seconds()
        parsed = with_signatures(given.parse(post, given.rules), post, given.rules)
        return parsed, self._cpu_seconds() - begun

    def _taken(self, given: Input, parsed: ParsedBody, cpu_seconds: float) -> _Taken:
        """What the request asks of its customers' rates, and how long it is to be held back. Raises `RetryLater`."""
        self._charge_waste(given, len(parsed.accepted), cpu_seconds)
        demand = self._admission.demand_of(parsed, given.post, given.rules, cpu_seconds)
        return demand, self._admission.take_rates(demand, given.patience_seconds)

    def _records(self, given: Input, parsed: ParsedBody) -> _Made:
        """The records, and what of the rejected inputs is among them."""
        kept: list[Rejected] = []

        def keeps(rejected: Rejected) -> bool:
            is_kept = self._admission.keeps(rejected, given.rules)
            if is_kept:
                kept.append(rejected)
            return is_kept

        return records_of(parsed, given.post, self._profile, keeps, given.headers), kept

    def _ready(self, given: Input, share: Share, parsed: ParsedBody, made: _Made, taken: _Taken) -> Ready:
        post, (records, kept) = given.post, made
        self._admission.hold(share, len(post.body) + size_of(records))
        tally = self._tallies.tally(parsed, post, given.rules) if given.source in SOURCES else {}
        return Ready(records, kept, Outcome(len(parsed.accepted), parsed.rejected), *taken, tally)

    def _charge_waste(self, given: Input, accepted: int, cpu_seconds: float) -> None:
        worth = REQUEST_SECONDS + accepted * _INPUT_SECONDS[given.source] + len(given.post.body) * BYTE_SECONDS
        if cpu_seconds > worth:
            self._admission.add_waste(party_of(given.post.client.address), cpu_seconds - worth)


def inline(post: Post, source: Source) -> Post | None:
    """The POST, unpacked, where it may be parsed on the event loop."""
    light = small(post, INLINE_BYTES[source])
    if light is None:
        return None
    data = light.body if light.unpacked is None else light.unpacked
    if data.count(b"\\") > INLINE_ESCAPES_MAX:
        return None
    return msgspec.structs.replace(light, invalid_max=INLINE_INVALID_MAX)


def customer_of(post: Post, source: Source, rules: Rules) -> str:
    """The listed customer whose shares a request takes before it is parsed; empty for all others together."""
    key = post.key or (key_in(beginning(post, rules, _KEY_WITHIN_BYTES)) if source == "mux" else "")
    found = rules.customers.find(key)
    return found.id if isinstance(found, Found) and rules.customers.lists(found.id) else ""
