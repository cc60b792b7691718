"""Watches a demo: reads the system's figures repeatedly, and compares them with the players' truth."""

import http.client
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from deploy.demo import accounts
from deploy.demo.comparing.compare import (
    Line,
    Observed,
    Truth,
    compare_views,
    customer_lines,
    total_lines,
)
from deploy.demo.comparing.latency import explanation, latency_lines
from deploy.demo.comparing.observe import Warehouse, accepted, published_ms, read_truths, rollups, written_ms
from deploy.demo.comparing.topic_reader import TopicReader
from deploy.demo.display import Display
from deploy.demo.shortened import FINISH_MS
from deploy.local.process import DeadlinePassed
from shared.settings import Settings

#: The warehouse is many files: counting them again and again would take the processors' share of a small machine.
_WAREHOUSE_SECONDS: Final = 5.0
_REQUEST_SECONDS_MAX: Final = 2.0
_READ_SECONDS: Final = 1.0
#: At the end everything is read, however busy the machine is.
_READ_ALL_SECONDS_MAX: Final = 30.0
_KEY_FIELDS: Final = ("customer_id", "view_id")


@dataclass(frozen=True)
class Verdict:
    """The end of a run: the whole table, the first differences, whether all is as it must be."""

    lines: Sequence[Line]
    differences: Sequence[str]
    explanation: str
    ok: bool

    def beside(self, lines: Sequence[Line]) -> "Verdict":
        """The same with more lines."""
        return replace(self, lines=[*self.lines, *lines], ok=self.ok and all(line.ok is not False for line in lines))

    def show(self, display: Display) -> None:
        """Prints the whole table."""
        display.final(self.lines)
        for difference in self.differences:
            display.say(f"  {difference}")
        display.say(self.explanation)
        display.step("everything is as the players know it" if self.ok else "THERE ARE DIFFERENCES, see above")


class Watched(Protocol):
    """What runs, and the addresses of its APIs."""

    @property
    def page_url(self) -> str:
        """The dashboard's page."""

    @property
    def dashboard_port(self) -> int:
        """Its port on this machine."""

    @property
    def collector_admin_ports(self) -> Sequence[int] | None:
        """The collectors' admin ports on this machine; None if a collector was restarted, which resets its counters."""

    @property
    def truths(self) -> Sequence[Path]:
        """The accounts of all the players' runs."""

    def fetched_warehouse(self) -> Path:
        """The folder of the Delta tables as they are now."""


class Watch:
    """What is known of a running demo. Use as a context manager; not for several threads."""

    def __init__(self, settings: Settings, services: Watched, postgres_dsn: str) -> None:
        self._services = services
        self._postgres_dsn = postgres_dsn
        self._token = accounts.token(postgres_dsn)
        self._topics = TopicReader(settings)
        self._warehouse_rows: int | None = None
        self._warehouse_read_at = float("-inf")
        self._page_shows = False
        #: Every publishing that was seen, ms since 1970.
        self._published_ms: set[int] = set()
        self._has_read_all = False
        self._truth = Truth()
        self._observed = Observed()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._topics.close()

    def refresh(self, read_seconds: float = _READ_SECONDS) -> list[str]:
        """Reads everything again, topics for `read_seconds` at most; returns the lines to print."""
        news = []
        had_rows = bool(self._warehouse_rows)
        self._has_read_all = self._topics.read(read_seconds)
        self._truth = read_truths(self._services.truths)
        if time.monotonic() - self._warehouse_read_at >= _WAREHOUSE_SECONDS:
            self._warehouse_rows = Warehouse(self._services.fetched_warehouse()).count()
            self._warehouse_read_at = time.monotonic()
        admin_ports = self._services.collector_admin_ports
        self._observed = Observed(
            beacons_accepted=None if admin_ports is None else accepted(admin_ports),
            collectors_restarted=admin_ports is None,
            beacons_in_kafka=self._topics.seen.beacons,
            beacons_rejected=self._topics.seen.rejected,
            live=self._topics.seen.live,
            views=self._topics.seen.views,
            warehouse_rows=self._warehouse_rows,
            rollups=rollups(self._postgres_dsn),
        )
        self._published_ms |= published_ms(self._postgres_dsn)
        if not self._page_shows and self._page_is_live():
            self._page_shows = True
            news.append(f"the page shows its first numbers: {self._services.page_url}")
        if not had_rows and self._warehouse_rows:
            news.append(f"the warehouse has its first {self._warehouse_rows} rows")
        return news

    def lines(self) -> list[Line]:
        """The table as of the last refresh."""
        return [*total_lines(self._truth, self._observed), *customer_lines(self._truth, self._observed)]

    @property
    def truth(self) -> Truth:
        """The players' account as of the last refresh."""
        return self._truth

    def is_settled(self) -> bool:
        """Whether the players are done, the topics were read to their ends and no line of the table differs any more."""
        return self._truth.done and self._has_read_all and all(line.ok is not False for line in self.lines())

    def compare(self) -> Verdict:
        """Reads everything a last time and compares every row with its truth.

        Raises `DeadlinePassed` when the topics cannot be read to their ends.
        """
        self._warehouse_read_at = float("-inf")
        self.refresh(_READ_ALL_SECONDS_MAX)
        if not self._has_read_all:
            raise DeadlinePassed(f"reading the topics to their ends: not within {_READ_ALL_SECONDS_MAX:g} s")
        warehouse = Warehouse(self._services.fetched_warehouse())
        fields = sorted({name for row in self._truth.views for name in row} & set(warehouse.fields()))
        views = compare_views(self._truth.views, warehouse.rows(fields or _KEY_FIELDS))
        lines = [*total_lines(self._truth, self._observed), *views.lines, *customer_lines(self._truth, self._observed)]
        closed, grace_ms = self._topics.seen.closed_views(), FINISH_MS["finish_clean_ms"]
        waits_ms, landings = self._topics.seen.live_waits.waits_ms(), warehouse.landings()
        written = written_ms(self._postgres_dsn)
        return Verdict(
            lines=[
                *lines,
                *latency_lines(landings, self._published_ms, closed, grace_ms, waits_ms, written_ms=written),
            ],
            differences=views.differences,
            explanation=explanation(len(closed), grace_ms),
            ok=self._truth.done and all(line.ok is not False for line in lines),
        )

    def _page_is_live(self) -> bool:
        port = self._services.dashboard_port
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_REQUEST_SECONDS_MAX)) as connection:
            try:
                connection.request("GET", "/v1/live", headers={"Authorization": f"Bearer {self._token}"})
                answer = connection.getresponse()
                picture = msgspec.json.decode(answer.read())
            except (OSError, http.client.HTTPException):
                return False
        return answer.status == http.HTTPStatus.OK and bool(picture["state"] == "live")
