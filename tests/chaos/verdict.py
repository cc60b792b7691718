"""The verdict: what came out, compared with the truth. Pure."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from shared.schemas.live import Live
from shared.schemas.view import View
from tests.chaos.feed import Truth

Key = tuple[str, str]


@dataclass(frozen=True)
class Observed:
    """All that stands committed in the output topics."""

    rows: list[View]
    live: list[Live]
    late: int
    rejected: int


@dataclass
class Verdict:
    """What is not as it must be; all empty and zero when all is right."""

    #: Views without a row.
    missing: list[Key] = field(default_factory=list)
    #: Revisions that stand twice.
    doubled: list[tuple[Key, int]] = field(default_factory=list)
    #: Fields of newest rows: key, field, observed, truth.
    wrong: list[tuple[Key, str, Any, Any]] = field(default_factory=list)
    #: Views whose rows do not begin with the same beacon, and rows of what never was a view.
    split: list[Key] = field(default_factory=list)
    #: Views that the live gauges still count as begun and not finished.
    still_open: int = 0
    #: Sums of the live gauges: name, observed, truth.
    sums: list[tuple[str, int, int]] = field(default_factory=list)
    #: Records that were late, and by how many those that were rejected differ from those that are no beacons.
    late_or_rejected: int = 0
    revisions: int = 0

    @property
    def is_right(self) -> bool:
        """Whether nothing is missing, doubled, wrong, split, open or rejected."""
        faults = (self.missing, self.doubled, self.wrong, self.split, self.still_open, self.sums, self.late_or_rejected)
        return not any(faults)


def judge(observed: Observed, truth: Truth) -> Verdict:
    """Compares every view and every sum."""
    verdict = Verdict(late_or_rejected=observed.late + abs(observed.rejected - truth.rejected))
    by_key: dict[Key, list[View]] = defaultdict(list)
    for row in observed.rows:
        by_key[row.customer_id, row.view_id].append(row)
    verdict.missing = sorted(truth.rows.keys() - by_key.keys())
    verdict.split = sorted(by_key.keys() - truth.rows.keys())
    for key, rows in by_key.items():
        revisions = [row.revision for row in rows]
        verdict.doubled += [(key, number) for number in set(revisions) if revisions.count(number) > 1]
        verdict.revisions += max(revisions) - 1
        if len({row.first_append_ms for row in rows}) > 1:
            verdict.split.append(key)
        newest = max(rows, key=lambda row: row.revision)
        for name, value in truth.rows.get(key, {}).items():
            if getattr(newest, name) != value:
                verdict.wrong.append((key, name, getattr(newest, name), value))
    _judge_live(observed, truth, verdict)
    return verdict


def _judge_live(observed: Observed, truth: Truth, verdict: Verdict) -> None:
    """Gauges are exactly once too: their sums show what views cannot: a beacon folded twice, a start counted twice."""
    live = observed.live
    last: dict[tuple[int, str], Live] = {}
    seen: dict[tuple[int, str, int], int] = defaultdict(int)
    for gauge in live:
        seen[gauge.partition, gauge.customer_id, gauge.bucket_ms] += 1
        newest = last.get((gauge.partition, gauge.customer_id))
        if newest is None or gauge.bucket_ms > newest.bucket_ms:
            last[gauge.partition, gauge.customer_id] = gauge
    verdict.still_open = sum(abs(gauge.open_now) for gauge in last.values())
    expected = {
        "beacons": truth.beacons,
        "duplicates": truth.copies,
        "dropped": truth.dropped,
        "views_started": len(truth.rows),
        "views_finished": len(truth.rows),
        # Counted at the first finish: where the fatal error comes after it, the row has it and the gauge does not.
        "playback_failures": sum(row.playback_failed for row in observed.rows if row.revision == 1),
        "late": 0,
    }
    for name, value in expected.items():
        total = sum(getattr(gauge, name) for gauge in live)
        if total != value:
            verdict.sums.append((name, total, value))
    if repeated := sum(count - 1 for count in seen.values()):
        verdict.sums.append(("buckets that stand twice", repeated, 0))
