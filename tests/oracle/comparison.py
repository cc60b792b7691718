"""Sessions through the real fold, their rows beside the oracle's, field by field."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import msgspec

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.bounds import RECENT_STEPS_MAX
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.schemas.view import View
from tests.oracle.rows.definitions import Row, expected
from tests.oracle.sessions.delivery import Delivered, delivered
from tests.oracle.sessions.viewer import Session, session

HOUR_MS: Final = 3_600_000
#: Sessions whose records go to one partition of the fold, in the order of their append times.
SESSIONS_AT_ONCE: Final = 200
#: Scores have two digits; integrals of sizes are sums of floats.
TOLERANCE: Final = 0.006

#: Fields that the oracle does not compute, each with the reason.
NOT_COMPARED: Final = {
    "schema_version": "of the code, not of beacons",
    "generation": "a setting",
    "revision": "counts how often the row was written: depends on when beacons came",
    "deleted": "compared as whether there is a row",
    **dict.fromkeys(
        (
            *(
                "aggregate_startup_ms",
                "player_startup_ms",
                "max_downscale",
                "playback_ranges",
                "is_bot",
                "signed",
            ),
            *("city", "region", "custom", "sub_property", "player_instance_id", "player_software", "player_version"),
            *("preload", "source_url", "video_series", "viewer_user_id"),
        ),
        "no simulated client sends it; test_sources.py compares it for each client",
    ),
}

#: Of the fold's row and the oracle's, and the number of plays in their session.
_Judge = Callable[[Row, Row, int], bool]


class Allowed(msgspec.Struct, frozen=True):
    """A difference that is none: where a field of the fold's row may differ from the oracle's, and why."""

    field: str
    reason: str
    holds: _Judge


ALLOWED: Final = (
    Allowed(
        "duplicate_count",
        "a repetition after the row was written does not make a revision: it is counted with the next one; of a CMCD session of "
        "several plays a repetition counts for the play that had its original when it came",
        lambda fold, oracle, plays: fold["duplicate_count"] <= oracle["duplicate_count"] or plays > 1,
    ),
    Allowed(
        "last_append_ms",
        "of the last beacon that the newest revision knows; it may be of another play of a CMCD session",
        lambda fold, oracle, _: fold["last_append_ms"] <= oracle["last_append_ms"] or fold["source"] == "cmcd",
    ),
    Allowed(
        "first_append_ms",
        "of a CMCD session of several plays: of the first beacon that came while the play was known, also if the beacon turned "
        "out to be another play's",
        lambda fold, oracle, plays: (
            fold["source"] == "cmcd" and (plays > 1 or fold["first_append_ms"] >= oracle["first_append_ms"])
        ),
    ),
)


class Skipped(msgspec.Struct, frozen=True):
    """Keys whose rows are not compared, and why."""

    reason: str
    #: Of the session, the fold's rows of the key and the key's beacons.
    holds: Callable[[Session, Collection[Row], Sequence[Delivered]], bool]


#: The share of all rows that may be left out for these reasons.
SKIPPED_SHARE_MAX: Final = 0.03
#: The oracle knows no order of arrival, so nothing is ever settled or closed for it.
SKIPPED: Final = (
    Skipped(
        "a beacon came more than the lateness window after the one before it: the view may have closed, and it is in no row",
        lambda _, __, records: _is_closed_between(records),
    ),
    Skipped(
        "a clock set back in a view without numbers (EPAS, native without `seq`) of more than 64 beacons, or with late ones: what "
        "shows it came when others were settled",
        lambda one, rows, records: (
            _is_set_back(one)
            and one.client in ("epas", "native-unnumbered")
            and (len(records) > RECENT_STEPS_MAX or any(row["late_count"] > 0 for row in rows))
        ),
    ),
    Skipped(
        "a clock set in a mux view of which a beacon came first in a copy that was received later by 5 s or more: mux views do not "
        "keep their beacons, and the delay of the first copy hid the step",
        lambda one, rows, records: (
            bool(one.steps) and any(row["source"] == "mux" for row in rows) and _has_nearer(records)
        ),
    ),
    Skipped(
        "a clock set back in a CMCD session of several plays and more than 64 beacons: the next play begins, by its time, among "
        "beacons that are settled",
        lambda one, rows, records: (
            _is_set_back(one)
            and any(row["source"] == "cmcd" for row in rows)
            and len(one.plays) > 1
            and len(records) > RECENT_STEPS_MAX
        ),
    ),
)


def _has_nearer(records: Sequence[Delivered]) -> bool:
    """Whether a copy was received well before the one that came first."""
    first: dict[int, int] = {}
    for record in sorted(records, key=lambda one: one.append_ms):
        recv_ms = record.beacon["recv_time_ms"]
        if first.setdefault(record.beacon["seq"], recv_ms) - recv_ms >= 5_000:
            return True
    return False


def _is_set_back(one: Session) -> bool:
    return any(by_ms < 0 for _, by_ms in one.steps)


@dataclass(frozen=True, slots=True)
class Difference:
    """A row on which fold and oracle disagree: field, the fold's value, the oracle's."""

    session: Session
    view_id: str
    fields: tuple[tuple[str, object, object], ...]
    records: tuple[Delivered, ...]

    def __str__(self) -> str:
        values = "".join(f"\n  {name}: fold {fold!r}, oracle {oracle!r}" for name, fold, oracle in self.fields)
        return f"session {self.session.number} ({self.session.client}), view {self.view_id}:{values}"


def folded(records: Iterable[Delivered]) -> dict[str, Row]:
    """The newest rows that the fold makes of these records, by view id."""
    driver = Driver(application(FinishRules()))
    ordered = sorted(records, key=lambda one: one.append_ms)
    given = ((topics.BEACONS, one.key, one.value, one.append_ms) for one in ordered)
    driver.pipe_all(given, commit_every=500)
    driver.advance_to(ordered[-1].append_ms + 30 * HOUR_MS)
    assert driver.outputs(topics.REJECTED) == []
    rows = (codec.VIEW.decode(output.value) for output in driver.outputs(topics.VIEWS))
    newest = {row.view_id: row for row in rows}
    return {view_id: _fields(row) for view_id, row in newest.items() if not row.deleted}


def _fields(row: View) -> Row:
    """A row's fields; of its timeline the times and names of what is no rendition, which have counts of their own."""
    events = [(one.at_ms, one.event) for one in row.events if one.event != "rendition"]
    return msgspec.structs.asdict(row) | {"events": events}


class Tally(msgspec.Struct):
    """How many rows were generated, and how many of them were not compared, by reason."""

    rows: int = 0
    skipped: Counter[str] = msgspec.field(default_factory=Counter)


def differences(seed: int, numbers: Sequence[int], tally: Tally | None = None) -> Iterator[Difference]:
    """Every row of these sessions on which fold and oracle disagree. Counts rows in `tally`."""
    tally = tally or Tally()
    for begin in range(0, len(numbers), SESSIONS_AT_ONCE):
        sessions = [session(seed, number) for number in numbers[begin : begin + SESSIONS_AT_ONCE]]
        came = [(one, delivered(one, seed)) for one in sessions]
        rows: dict[str, dict[str, Row]] = {}
        for view_id, row in folded(record for _, records in came for record in records).items():
            rows.setdefault(view_id.partition(".")[0], {})[view_id] = row
        for one, records in came:
            for key, own in _by_key(records):
                ours, theirs = rows.get(key, {}), expected(own)
                count = len(ours.keys() | theirs.keys())
                tally.rows += count
                reason = _reason_to_skip(one, ours, own)
                if reason is not None:
                    tally.skipped[reason] += count
                    continue
                for view_id, fields in _unlike(one, ours, theirs):
                    yield Difference(one, view_id, fields, tuple(own))


def _is_closed_between(records: Iterable[Delivered]) -> bool:
    """Whether the view may have closed before the last of them came: what comes then is late, and in no row."""
    # Copies do not keep a view open.
    first: dict[tuple[object, ...], int] = {}
    for record in sorted(records, key=lambda one: one.append_ms):
        beacon = record.beacon
        names = ("client_time_ms", "seq", "source_event", "playhead_ms")
        first.setdefault((*map(beacon.get, names), repr(beacon.get("attrs"))), record.append_ms)
    appended = sorted(first.values())
    return any(later - earlier > FinishRules().lateness_ms for earlier, later in pairwise(appended))


def expected_rows(seed: int, numbers: Iterable[int]) -> Iterator[Row]:
    """The oracle's rows of these sessions."""
    for number in numbers:
        for _, own in _by_key(delivered(session(seed, number), seed)):
            yield from expected(own).values()


def _by_key(records: Iterable[Delivered]) -> Iterable[tuple[str, list[Delivered]]]:
    by_key: dict[str, list[Delivered]] = {}
    for record in records:
        by_key.setdefault(record.key.decode().partition(":")[2], []).append(record)
    return by_key.items()


def shrunk(found: Difference) -> Difference:
    """The same disagreement, on the same fields, with as few records as leaving out one after the other finds."""
    names = {name for name, _, _ in found.fields}
    records, size = list(found.records), max(1, len(found.records) // 2)
    while size:
        at = 0
        while at < len(records):
            fewer = records[:at] + records[at + size :]
            again = [fields for _, fields in _compared(found.session, fewer)] if fewer else []
            if any({name for name, _, _ in fields} & names for fields in again):
                records = fewer
            else:
                at += size
        size //= 2
    view_id, fields = next(_compared(found.session, records))
    return Difference(found.session, view_id, fields, tuple(records))


def _compared(one: Session, records: list[Delivered]) -> Iterator[tuple[str, tuple[tuple[str, object, object], ...]]]:
    fold = folded(records)
    return iter(()) if _reason_to_skip(one, fold, records) is not None else _unlike(one, fold, expected(records))


def _reason_to_skip(one: Session, fold: dict[str, Row], records: Sequence[Delivered]) -> str | None:
    return next((skipped.reason for skipped in SKIPPED if skipped.holds(one, fold.values(), records)), None)


def _unlike(
    one: Session, fold: dict[str, Row], oracle: dict[str, Row]
) -> Iterator[tuple[str, tuple[tuple[str, object, object], ...]]]:
    """The fields on which the rows of one key disagree, by view id."""
    for view_id in sorted(fold.keys() | oracle.keys()):
        ours, theirs = fold.get(view_id), oracle.get(view_id)
        if ours is None or theirs is None:
            yield view_id, (("a row", ours is not None, theirs is not None),)
            continue
        names = sorted(theirs.keys() & ours.keys())
        plays = max(len(oracle), len(one.plays))
        unlike = tuple((name, ours[name], theirs[name]) for name in names if not _same(name, ours, theirs, plays))
        if unlike:
            yield view_id, unlike


def _same(name: str, ours: Row, theirs: Row, plays: int) -> bool:
    fold, oracle = ours[name], theirs[name]
    if fold == oracle or any(one.field == name and one.holds(ours, theirs, plays) for one in ALLOWED):
        return True
    if isinstance(fold, float) and isinstance(oracle, float | int):
        return abs(fold - oracle) <= TOLERANCE
    return False
