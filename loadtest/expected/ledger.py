"""The account of a run: what was posted and answered, the truth of every view that is over, and the file that holds both."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadtest.expected.truth import TIMES, SimulatedBeacon, row
from loadtest.story import Story


@dataclass(slots=True)
class Totals:
    """Counts of the whole run. `beacons_*` count every beacon of every POST; only distinct ones are ever dropped."""

    posts: int = 0
    #: Attempts that were not answered 2xx.
    posts_failed: int = 0
    beacons_sent: int = 0
    beacons_acked: int = 0
    #: Acknowledged beacons beyond the first of each.
    duplicates: int = 0
    #: Acknowledged distinct beacons of page loads that never became a view.
    beacons_dropped: int = 0
    views_started: int = 0
    views_never_started: int = 0
    #: Views with a POST of unknown outcome: the content of their rows is unknown, so they have no truth.
    views_unresolved: int = 0


@dataclass(slots=True)
class ViewRecord:
    """One view's deliveries so far."""

    story: Story
    #: The page load on the right clock, ms since 1970.
    loaded_ms: int
    delivered: dict[int, SimulatedBeacon] = field(default_factory=dict)


class Ledger:
    """Counts posts and answers, and settles views into truth. Not safe for threads."""

    def __init__(self, seed: int, path: Path, began_ms: int = 0) -> None:
        self.totals = Totals()
        self._seed = seed
        self._began_ms = began_ms
        self._path = path
        self._rows: list[dict[str, Any]] = []

    def posted(self, view: ViewRecord, beacons: Sequence[SimulatedBeacon], *, ok: bool) -> None:
        """One attempt came to its end: answered 2xx, or not."""
        totals = self.totals
        totals.posts += 1
        totals.beacons_sent += len(beacons)
        if not ok:
            totals.posts_failed += 1
            return
        totals.beacons_acked += len(beacons)
        for beacon in beacons:
            totals.duplicates += beacon.seq in view.delivered
            view.delivered[beacon.seq] = beacon

    def settle(self, view: ViewRecord, *, is_known: bool) -> None:
        """The player is over, and every POST of it is answered (unless not `is_known`)."""
        if not is_known:
            self.totals.views_unresolved += 1
            return
        delivered = list(view.delivered.values())
        if not delivered:
            return
        truth = row(view.story, delivered)
        if truth is None:
            self.totals.views_never_started += 1
            self.totals.beacons_dropped += len(delivered)
            return
        self.totals.views_started += 1
        for name in TIMES:
            truth[name] += view.loaded_ms
        self._rows.append(truth)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The truth of every view settled so far."""
        return self._rows

    def write(self, *, done: bool) -> None:
        """Replaces the truth file."""
        write_truth(
            self._path, seed=self._seed, totals=self.totals, rows=self._rows, done=done, began_ms=self._began_ms
        )


def write_truth(
    path: Path, *, seed: int, totals: Totals, rows: list[dict[str, Any]], done: bool, began_ms: int = 0
) -> None:
    """Replaces a truth file; a reader sees the old one or the new one, never a part.

    `began_ms`: when the run began, ms since 1970; 0 where it is not known.
    """
    content = {"done": done, "seed": seed, "began_ms": began_ms, "totals": asdict(totals), "views": rows}
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(orjson.dumps(content))
    beside.replace(path)
