"""The load test's page: every figure of locust's files and of the comparison is on it, and nothing of the machine."""

from pathlib import Path

import pytest

from deploy.demo.comparing.compare import Line
from deploy.demo.comparing.watch import Verdict
from deploy.demo.load.__main__ import LocustCrowd, result
from deploy.demo.load.report import POINTS_MAX, Moment, Route, moments, page, routes

_PERCENTILES = "50%,66%,75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%"
STATS = f"""\
Type,Name,Request Count,Failure Count,Median Response Time,Max Response Time,Requests/s,{_PERCENTILES}
POST,/cmcd/<key> (hls.js),9,0,12,40.25,1.5,12,14,15,16,20,30,38,40,40,40,40
,Aggregated,1209,3,11,940.25,20.15,11,14,15,16,20,30,38,140,900,940,940
"""
HISTORY = f"""\
Timestamp,User Count,Type,Name,Requests/s,{_PERCENTILES},Total Request Count
1700000000,1,,Aggregated,0.0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0
1700000001,60,,Aggregated,9.0,11,12,13,14,15,16,17,18,19,20,21,9
"""


def test_locusts_files_are_read() -> None:
    one, whole = routes(STATS.splitlines())
    assert one == Route("/cmcd/<key> (hls.js)", 9, 0, 1.5, 12, 40, 40.25)
    assert (whole.name, whole.requests, whole.failures, whole.p99_ms) == ("Aggregated", 1_209, 3, 140)
    assert moments(HISTORY.splitlines()) == [Moment(1_700_000_000, 1, 0, 0), Moment(1_700_000_001, 60, 11, 18)]
    assert routes([]) == []
    assert moments([]) == []


def test_no_percentile_is_above_the_maximum() -> None:
    # Locust rounds 7.66 ms to 8 ms in its percentiles, and not in its maximum.
    rounded = STATS.splitlines()[0] + "\n,Aggregated,57,8,1,7.65,1.5,8,8,8,8,8,8,8,8,8,8,8\n"
    (whole,) = routes(rounded.splitlines())
    assert (whole.p50_ms, whole.p99_ms, whole.max_ms) == (7.65, 7.65, 7.65)


def test_the_page_says_of_every_line_whether_it_is_right() -> None:
    lines = [
        Line("views <lost>", "1", "0", False),
        Line("views open", "0", "0", True),
        Line("closed view to row", "0.1 s / 0.2 s", "", None),
    ]
    verdict = Verdict(lines, ["missing: acme:v1"], "Closed view to row: …", False)
    written = page("made so", verdict, routes(STATS.splitlines()), moments(HISTORY.splitlines()))
    assert "<h1>Load test: THERE ARE DIFFERENCES</h1>" in written
    assert '<tr class="differs"><td>views &lt;lost&gt;</td><td>1</td><td>0</td><td>DIFFERS</td></tr>' in written
    assert "<tr><td>views open</td><td>0</td><td>0</td><td>ok</td></tr>" in written
    assert "<tr><td>closed view to row</td><td>0.1 s / 0.2 s</td><td></td><td></td></tr>" in written
    assert "<li>missing: acme:v1</li>" in written
    assert (
        "<tr><td>/cmcd/&lt;key&gt; (hls.js)</td><td>9</td><td>0</td><td>1.5</td><td>12</td><td>40</td><td>40</td></tr>"
        in written
    )
    assert "<tr><td>all</td><td>1,209</td><td>3</td>" in written
    assert "viewers, 60 at the most" in written
    assert "<script" not in written


@pytest.mark.thorough
def test_a_page_of_a_long_run_stays_small() -> None:
    history = [Moment(second, 100, 5, 50) for second in range(14_400)]
    written = page("made so", Verdict([], [], "", True), [], history)
    assert "<h1>Load test: every row is as the players know it</h1>" in written
    assert written.count(",") < 3 * 2 * POINTS_MAX
    assert "<svg" not in page("made so", Verdict([], [], "", True), [], [])


def test_a_run_is_a_result_with_its_counts_and_latencies(tmp_path: Path) -> None:
    crowd = LocustCrowd("kickoff", 100, 120, 7, 2, tmp_path / "report.html")
    lines = [
        Line("beacons answered 2xx", "6,699", "6,699", True),
        Line("views finished", "363", "363", True),
        Line("closed view to row, minus 2 s, p50 / p99", "0.17 s / 0.35 s", "", None),
    ]
    stats = ["Type,Name,Request Count,50%,99%", "POST,/,2000,8,30", ",Aggregated,2414,9,34"]
    part = result(crowd, Verdict(lines, [], "", True), stats)
    assert part.command == "make loadtest SHAPE=kickoff VIEWERS=100 SECONDS=120"
    assert part.lines[0].startswith("363 views, 6,699 beacons, 2,414 POSTs")
    assert part.cell("POST", 1) == "9 ms / 34 ms"
    assert part.cell("closed view", 1) == "0.17 s / 0.35 s"
