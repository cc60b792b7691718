"""The tables of docs/capacity.md: what 768 partitions and 100 slots of a million open views cost, and which bound is met first."""

from typing import Final, NamedTuple

from bench.report.figures import BROKER, FULL, RATE, Results
from bench.scale.host import profile
from bench.scale.model import (
    BROKER_TERMS,
    SLOT_TERMS,
    Point,
    broker_terms,
    members_described,
    partitions_described,
    slot_terms,
)
from services.processor.catalogue import APPLICATIONS
from services.processor.runtime.kafka import clients
from shared import codec, topics
from shared.schemas.presence import SCHEMA_VERSION, Presence

PARTITIONS: Final = 768
SLOTS: Final = 100
#: Of a slot, each with a beacon in ten seconds; views last ten minutes.
OPEN_VIEWS: Final = 1_000_000
_BEACON_SECONDS: Final = 10
_VIEW_SECONDS: Final = 600
#: With a standby each.
REPLICAS: Final = 2 * SLOTS
#: Commits every 200 ms. A commit marks its partition of the changelog, the group's offsets and one of topic `views`.
COMMITS: Final = 5 * PARTITIONS
_MARKED: Final = 3
_BEATS_A_SECOND: Final = 5
_COPIES: Final = 3
#: What is there at the most: cores of the largest host that the finalizer's driver, or all brokers together, are given.
_HOST_CORES: Final = 96
_WANTED_HOURS: Final = 24
_MEMORY_MIB: Final = 8_192
_DAY_HOURS: Final = 24

ALL_VIEWS: Final = SLOTS * OPEN_VIEWS
BEACONS: Final = ALL_VIEWS / _BEACON_SECONDS
ENDED: Final = ALL_VIEWS / _VIEW_SECONDS


class Bound(NamedTuple):
    """What there is at the most, and what is needed there."""

    what: str
    needed: str
    most: str
    #: Of what there is, as a factor.
    share: float
    is_setting: bool = False

    @property
    def row(self) -> str:
        met = f"{ALL_VIEWS / self.share / 1e6:,.0f} million"
        return f"| {self.what} | {self.needed} | {self.most} | {self.share:.0%} | {met} |"


def table(results: Results) -> list[str]:
    """For docs/capacity.md, without anything that `bench.scale` measures: how much there is of what, and the bounds."""
    bounds = sorted(_bounds(results), key=lambda one: -one.share)
    return [
        f"| {PARTITIONS} partitions, {SLOTS} slots, {OPEN_VIEWS:,} open views a slot | how much |",
        "|---|---|",
        *_amounts(),
        "",
        "| work | brokers, cores | others, cores |",
        "|---|---|---|",
        *_work(results),
        "",
        f"| bound | needed there | there is | of it | met at open views, on {SLOTS} slots |",
        "|---|---|---|---|---|",
        *(one.row for one in bounds),
        "",
        f"{_first(bounds)} {_more_slots(results)}",
    ]


def protocol(results: Results) -> list[str]:
    """For docs/capacity.md: what slots and partitions cost there beside the beacons, by the fitted model."""
    brokers, slots = _factors(results)
    point = _point()
    own = dict(zip(SLOT_TERMS, slot_terms(point), strict=True))
    costs = [
        (term, brokers[term] * number, slots.get(term, 0.0) * own.get(term, 0.0))
        for term, number in zip(BROKER_TERMS, broker_terms(point), strict=True)
    ]
    return [
        f"| {PARTITIONS} partitions, {SLOTS} slots, beside the beacons | brokers, cores | all slots, cores |",
        "|---|---|---|",
        *(f"| {_NAMES[term]} | {broker:.2f} | {of_slots:.2f} |" for term, broker, of_slots in costs),
        f"| all | {sum(one[1] for one in costs):.2f} | {sum(one[2] for one in costs):.2f} |",
        "",
        _largest(results),
    ]


def _first(bounds: list[Bound]) -> str:
    """Which are met first; `bounds` by how much is needed of each."""
    fixed = next(one for one in bounds if not one.is_setting)
    first = f"The first bound that is met: {fixed.what}."
    return first if bounds[0] is fixed else f"{first} Before it a setting is: {bounds[0].what}."


_NAMES: Final = {
    "fixed": "fixed",
    "a slot": "slots: the group's heartbeats, polls, questions for ends",
    "a partition": "partitions",
    "a partition described/s": "topics: partitions described",
    "a commit/s": "transactions",
    "a heartbeat read/s": "presence: heartbeats read",
    "a member described/s": "lookups: members described",
}


def _amounts() -> list[str]:
    of = profile(PARTITIONS)
    application = APPLICATIONS["video_views"]({})
    kept = sum(
        topic.partitions(of) for topic in {one.name: one for one in (*application.topics, topics.PRESENCE)}.values()
    )
    beats = _BEATS_A_SECOND * REPLICAS
    return [
        (
            f"| the group's protocol | {1000 // clients.HEARTBEAT_MS * SLOTS} heartbeats a second, and from each broker"
            f" {1000 // clients.INPUT_WAIT_MS * SLOTS:,} fetches a second while little comes |"
        ),
        (
            f"| presence | {REPLICAS} replicas send {beats:,} heartbeats a second to one partition, and each reads all:"
            f" {beats * REPLICAS:,} a second, {beats * REPLICAS * _beat_bytes() / 1e6:.0f} MB/s from one broker |"
        ),
        f"| lookups | {members_described(SLOTS, REPLICAS):,.0f} members of the group described a second |",
        f"| standbys | {SLOTS}, each with {OPEN_VIEWS:,} open views in a second copy |",
        (
            f"| topics | {kept:,} partitions, {_COPIES * kept:,} replicas;"
            f" {partitions_described(SLOTS, PARTITIONS):,.0f} partitions described a second, as every slot asks for all |"
        ),
        f"| transactions | {COMMITS:,} a second, {_MARKED * COMMITS:,} markers a second |",
    ]


def _beat_bytes() -> int:
    """A heartbeat of a replica with its share of the partitions, encoded."""
    mine = [SLOTS * number for number in range(PARTITIONS // SLOTS)]
    beat = Presence(
        schema_version=SCHEMA_VERSION,
        application="video_views",
        slot=f"processor-{SLOTS}/0",
        replica=0,
        incarnation=32 * "0",
        role="active",
        url=f"http://processor-{SLOTS}.processor:9103",
        partitions=mine,
        lags=dict.fromkeys(mine, 0),
        successor=1,
    )
    return len(codec.PRESENCE.encode(beat))


def _work(results: Results) -> list[str]:
    processor, rows = results["processor"], results["handover"].number("1,000,000", 2)
    bronze, views = _finalizer(results)
    changes = BEACONS * _records(results)
    return [
        (
            f"| processors and what they ask of brokers, of one copy: {BEACONS:,.0f} beacons a second |"
            f" {BEACONS * processor.number(FULL, BROKER) / 1e6:.0f} |"
            f" {BEACONS / processor.number(FULL, RATE):.0f} |"
        ),
        f"| standbys read the changelog: {changes:,.0f} rows a second | | {changes / rows:.0f} |",
        f"| finalizer: raw beacons, and {ENDED:,.0f} views a second | | {bronze:.0f} + {views:.0f} |",
        f"| finalizer: two whole hours counted again each minute, at the most | | {_recounts(results):.0f} |",
    ]


def _bounds(results: Results) -> list[Bound]:
    fold = results["processor"].number(FULL, RATE)
    a_slot = BEACONS / SLOTS
    finalizer = sum(_finalizer(results))
    brokers = BEACONS * results["processor"].number(FULL, BROKER) / 1e6
    kept = (
        (topics.BEACONS.retention_bytes or 0)
        / (BEACONS / PARTITIONS * results["sizes"].number("topic beacons", 2))
        / 3600
    )
    memory = results["memory"].number("a backlog", 1)
    return [
        Bound("a slot folds on one thread, beacons a second", f"{a_slot:,.0f}", f"{fold:,.0f}", a_slot / fold),
        Bound(
            "the finalizer on one host, without counting hours again, cores",
            f"{finalizer:,.0f}",
            f"{_HOST_CORES}",
            finalizer / _HOST_CORES,
        ),
        Bound(
            f"topic `beacons` is bounded to {(topics.BEACONS.retention_bytes or 0) >> 30} GiB a partition, hours kept",
            f"{_WANTED_HOURS}",
            f"{kept:.1f}",
            _WANTED_HOURS / kept,
            is_setting=True,
        ),
        Bound(
            "brokers, for processors and one copy alone, cores",
            f"{brokers:,.0f}",
            f"{_HOST_CORES}",
            brokers / _HOST_CORES,
        ),
        Bound("memory of a slot, MiB", f"{memory:,.0f}", f"{_MEMORY_MIB:,}", memory / _MEMORY_MIB),
    ]


def _finalizer(results: Results) -> tuple[float, float]:
    """Cores for raw beacons, and for views."""
    whole = results["finalizer-whole"]
    return BEACONS / whole.number("views of a day: bronze", 4), ENDED / whole.number("views of an hour: all of it", 4)


def _recounts(results: Results) -> float:
    """Cores, as docs/capacity.md plans: two hours each minute, though of large ones the changed minutes alone are counted."""
    return 2 * ENDED * 3600 / 60 / results["finalizer-hour"].number("of the hour", 4)


def _records(results: Results) -> float:
    """Records of the changelog, a beacon."""
    return float(results["processor"].cell(FULL, 7).split(",")[1].split()[0])


def _point() -> Point:
    return Point(SLOTS, PARTITIONS, _BEATS_A_SECOND * REPLICAS**2, REPLICAS, COMMITS, 0, 0)


def _factors(results: Results) -> tuple[dict[str, float], dict[str, float]]:
    """The cores of the brokers and of the slots, by term."""
    scale = results["scale"]
    broker = {term: scale.number(f"{term} |", 1) / 1e6 for term in BROKER_TERMS}
    return broker, {term: scale.number(f"{term} |", 2) / 1e6 for term in SLOT_TERMS}


def _more_slots(results: Results) -> str:
    most = results["processor"].number(FULL, RATE) * _BEACON_SECONDS
    return (
        f"A slot has at most {most:,.0f} open views: {most * SLOTS / 1e6:.0f} million on {SLOTS} slots,"
        f" {most * PARTITIONS / 1e6:.0f} million on one for each of the {PARTITIONS} partitions."
    )


def _largest(results: Results) -> str:
    (found,) = (line.split("|")[1].strip() for line in results["scale"].lines if line.startswith("| largest: "))
    return f"The largest that was run here by processes: {found.removeprefix('largest: ')}, idle, on two cores."
