"""Sessions through the real fold, their rows beside the oracle's, field by field."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import msgspec

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish import FinishRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.schemas.view import View
from tests.oracle.definitions import Row, expected
from tests.oracle.delivery import Delivered, delivered
from tests.oracle.viewer import Session, session

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
            *("aggregate_startup_ms", "player_startup_ms", "max_downscale", "playback_ranges", "sample_rate", "is_bot"),
            *("city", "region", "custom", "sub_property", "player_instance_id", "player_software", "player_version"),
            *("preload", "source_url", "video_series", "viewer_user_id"),
        ),
        "no simulated client sends it; test_sources.py compares it for each client",
    ),
}

#: Of the fold's row and the oracle's.
_Judge = Callable[[Row, Row], bool]


class Allowed(msgspec.Struct, frozen=True):
    """A difference that is none: where a field of the fold's row may differ from the oracle's, and why."""

    field: str
    reason: str
    holds: _Judge


ALLOWED: Final = (
    Allowed(
        "duplicate_count",
        "a repetition after the row was written does not make a revision: it is counted with the next one",
        lambda fold, oracle: fold["duplicate_count"] <= oracle["duplicate_count"],
    ),
    Allowed(
        "last_append_ms",
        "of the last beacon that the newest revision knows; it may be of another play of a CMCD session",
        lambda fold, oracle: fold["last_append_ms"] <= oracle["last_append_ms"] or fold["source"] == "cmcd",
    ),
    Allowed(
        "first_append_ms",
        "of a play of a CMCD session that other beacons showed to be one: when they did",
        lambda fold, oracle: fold["first_append_ms"] >= oracle["first_append_ms"] and fold["source"] == "cmcd",
    ),
)


def is_settled(one: Session) -> bool:
    """Whether the fold follows `docs/view.md` in it, or the definitions decide it.

    Pending: clock steps; losses of mux (the playhead of a view whose counters say that it played), of views with ads (a
    break whose end was lost), and of CMCD sessions of several plays (where a play ends is not known).
    """
    kinds = {moment.kind for play in one.plays for moment in play.moments}
    decided = one.client != "mux" and "adbreakstart" not in kinds and len(one.plays) == 1
    return not one.steps and (decided or not one.losses)


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


def settled_differences(seed: int, numbers: Iterable[int]) -> Iterator[Difference]:
    """As `differences`, without what is pending."""
    yield from differences(seed, [number for number in numbers if is_settled(session(seed, number))])


def differences(seed: int, numbers: Sequence[int]) -> Iterator[Difference]:
    """Every row of these sessions on which fold and oracle disagree."""
    for begin in range(0, len(numbers), SESSIONS_AT_ONCE):
        sessions = [session(seed, number) for number in numbers[begin : begin + SESSIONS_AT_ONCE]]
        came = [(one, delivered(one, seed)) for one in sessions]
        rows: dict[str, dict[str, Row]] = {}
        for view_id, row in folded(record for _, records in came for record in records).items():
            rows.setdefault(view_id.partition(".")[0], {})[view_id] = row
        for one, records in came:
            for key, own in _by_key(records):
                if _is_closed_between(own):
                    continue
                for view_id, fields in _unlike(rows.get(key, {}), expected(own)):
                    yield Difference(one, view_id, fields, tuple(own))


def _is_closed_between(records: Iterable[Delivered]) -> bool:
    """Whether the view may have closed before the last of them came: what comes then is late, and in no row."""
    appended = sorted(record.append_ms for record in records)
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
            again = [fields for _, fields in _unlike(folded(fewer), expected(fewer))] if fewer else []
            if any({name for name, _, _ in fields} & names for fields in again):
                records = fewer
            else:
                at += size
        size //= 2
    view_id, fields = next(_unlike(folded(records), expected(records)))
    return Difference(found.session, view_id, fields, tuple(records))


def _unlike(
    fold: dict[str, Row], oracle: dict[str, Row]
) -> Iterator[tuple[str, tuple[tuple[str, object, object], ...]]]:
    for view_id in sorted(fold.keys() | oracle.keys()):
        ours, theirs = fold.get(view_id), oracle.get(view_id)
        if ours is None or theirs is None:
            yield view_id, (("a row", ours is not None, theirs is not None),)
            continue
        if ours["truncated"]:
            # What a view passes in the store's bytes folds no more: the oracle has no store.
            continue
        names = sorted(theirs.keys() & ours.keys())
        unlike = tuple((name, ours[name], theirs[name]) for name in names if not _same(name, ours, theirs))
        if unlike:
            yield view_id, unlike


def _same(name: str, ours: Row, theirs: Row) -> bool:
    fold, oracle = ours[name], theirs[name]
    if fold == oracle or any(one.field == name and one.holds(ours, theirs) for one in ALLOWED):
        return True
    if isinstance(fold, float) and isinstance(oracle, float | int):
        return abs(fold - oracle) <= TOLERANCE
    return False
