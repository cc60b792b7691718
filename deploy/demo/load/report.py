"""The load test's page: the results of the views, and the requests by route. Pure: figures to HTML, without scripts.

The figures of requests are those of locust's CSV files (`--csv`), which it computes over all of its processes.
"""

import csv
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deploy.demo.comparing.compare import Line
from deploy.demo.comparing.watch import Verdict

#: Points of the chart; a longer run is shown in coarser steps.
POINTS_MAX: Final = 240
_WIDTH: Final = 760
_HEIGHT: Final = 180
_LEFT: Final = 60
_STYLE: Final = """\
body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
td, th { padding: 0.15em 0.8em; border-bottom: 1px solid #ddd; text-align: right }
td:first-child, th:first-child { text-align: left } .differs { color: #b00020; font-weight: bold }"""


@dataclass(frozen=True)
class Route:
    """What one kind of client saw of one route; times in ms."""

    name: str
    requests: int
    #: Not answered 2xx; they were sent again.
    failures: int
    per_second: float
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True)
class Moment:
    """One second of the run; the percentiles, in ms, are of its last ten seconds."""

    at: int
    users: int
    p50_ms: float
    p99_ms: float


def routes(stats: Iterable[str]) -> list[Route]:
    """The lines of locust's `_stats.csv`, the sum of all as the last.

    Locust rounds times before it counts them, the maximum excepted: its percentiles may be above it, and are bounded by it here.
    """
    return [_route_of(row) for row in csv.DictReader(stats)]


def _route_of(row: Mapping[str, str]) -> Route:
    max_ms = _number(row["Max Response Time"])
    return Route(
        row["Name"],
        int(row["Request Count"]),
        int(row["Failure Count"]),
        _number(row["Requests/s"]),
        min(_number(row["50%"]), max_ms),
        min(_number(row["99%"]), max_ms),
        max_ms,
    )


def moments(history: Iterable[str]) -> list[Moment]:
    """The lines of locust's `_stats_history.csv`."""
    return [
        Moment(int(row["Timestamp"]), int(row["User Count"]), _number(row["50%"]), _number(row["99%"]))
        for row in csv.DictReader(history)
        if row["Name"] == "Aggregated"
    ]


def page(summary: str, verdict: Verdict, requests: Sequence[Route], history: Sequence[Moment]) -> str:
    """The page. `summary` is HTML that describes the run."""
    outcome = "every row is as the players know it" if verdict.ok else "THERE ARE DIFFERENCES"
    answered = _table(
        ("route (client)", "requests", "sent again", "a second", "p50, ms", "p99, ms", "max, ms"), map(_route, requests)
    )
    compared = _table(("what", "observed", "truth", ""), map(_line, verdict.lines))
    differences = "".join(f"<li>{html.escape(each)}</li>" for each in verdict.differences)
    return f"""\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Playhead: load test</title><style>
{_STYLE}
</style></head><body>
<h1>Load test: {outcome}</h1>
<p>{summary}</p>
<h2>Requests</h2>
<p>From the sending of a POST to its answer, which comes once Kafka has every beacon of it; by route and player.</p>
{answered}
{_chart(history[:: 1 + len(history) // POINTS_MAX])}
<h2>What became of the views</h2>
<p>The players' own account (which beacons of which view were answered 2xx, and what its row must therefore hold) beside what the
system reports.</p>
{compared}
<ul>{differences}</ul>
<pre style="white-space: pre-wrap">{html.escape(verdict.explanation)}</pre>
</body></html>
"""


def _route(route: Route) -> tuple[tuple[str, ...], bool]:
    times = (f"{ms:,.0f}" for ms in (route.p50_ms, route.p99_ms, route.max_ms))
    name = "all" if route.name == "Aggregated" else route.name
    return (name, f"{route.requests:,}", f"{route.failures:,}", f"{route.per_second:,.1f}", *times), True


def _line(line: Line) -> tuple[tuple[str, ...], bool]:
    return (line.name, line.observed, line.truth, line.verdict), line.ok is not False


def _table(head: tuple[str, ...], rows: Iterable[tuple[tuple[str, ...], bool]]) -> str:
    lines = ["<table>", "<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>"]
    for cells, is_right in rows:
        mark = "" if is_right else ' class="differs"'
        lines.append(f"<tr{mark}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _chart(history: Sequence[Moment]) -> str:
    """Viewers, and the percentiles of their answers, over the run; each to a scale of its own."""
    if not history:
        return ""
    users_max = max(1, *(each.users for each in history))
    ms_max = max(1.0, *(each.p99_ms for each in history))
    began = history[0].at
    seconds = max(1, history[-1].at - began)

    def curve(colour: str, shares: Iterable[float]) -> str:
        points = " ".join(
            f"{_LEFT + (each.at - began) / seconds * (_WIDTH - _LEFT):.1f},{20 + (1 - share) * (_HEIGHT - 40):.1f}"
            for each, share in zip(history, shares, strict=True)
        )
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'

    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-size="12"><title>viewers and answer times</title>',
        f'<text x="{_LEFT}" y="12" fill="#777">viewers, {users_max:,} at the most</text>',
        f'<text x="{_LEFT + 190}" y="12" fill="#1f6feb">p50, to {ms_max:,.0f} ms</text>',
        f'<text x="{_LEFT + 340}" y="12" fill="#b00020">p99, to {ms_max:,.0f} ms</text>',
        f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end" fill="#222">{seconds:,} s</text>',
        curve("#9aa4b2", (each.users / users_max for each in history)),
        curve("#1f6feb", (each.p50_ms / ms_max for each in history)),
        curve("#b00020", (each.p99_ms / ms_max for each in history)),
        "</svg>",
    ]
    return "\n".join(lines)


def _number(text: str) -> float:
    """A figure; locust writes N/A where nothing was answered yet."""
    return 0.0 if text == "N/A" else float(text)
