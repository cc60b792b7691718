"""Tables of documents that gather figures of several results. A figure is a cell of a result's table."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from bench.report.results import Compared, Part

Results = Mapping[str, Part]

_PLAYHEAD: Final = "Playhead, reduced fold | 200 ms"
FULL: Final = "Playhead, video_views, the full fold | 200 ms"
STREAMS: Final = "Kafka Streams 4.3.1, 64 MiB cache | 200 ms"
#: The peer of the full fold.
STREAMS_FULL: Final = "Kafka Streams 4.3.1, no cache, the full fold of one client | 200 ms"
#: Columns of the processor's table.
RATE, BROKER, RSS = 2, 4, 5
INTAKE: Final = "Playhead's collector, the full intake"
_SERVER: Final = "Playhead's server, events produced as they came"
#: Column of the collector's table: CPU µs a beacon.
_A_BEACON: Final = 4


def readme(results: Results) -> list[str]:
    """The table of README.md: what was measured, beside what, and whether the goal is met."""
    processor, collector = results["processor"], results["collector"]
    queries = results["finalizer-queries"]
    merges, whole, reprocess = (results[f"finalizer-{name}"] for name in ("merges", "whole", "reprocess"))
    beacons = "beacons per CPU-second, commits every 200 ms"
    cpu, measured = "CPU per beacon, 20 per POST, 64 connections", "CPU a beacon, 20 a POST, 64 connections"
    rows = [
        (
            f"Reduced fold, {beacons}",
            processor.cell(_PLAYHEAD, RATE),
            f"Kafka Streams with a cache: {processor.cell(STREAMS, RATE)}",
            _goal(processor, "beacons per CPU-second: 200 ms commits, reduced fold to Kafka Streams"),
        ),
        (
            f"Full fold of a view, {beacons}",
            processor.cell(FULL, RATE),
            f"Kafka Streams, reduced fold: {processor.cell(STREAMS, RATE)}",
            _goal(processor, "beacons per CPU-second: 200 ms commits, full fold"),
        ),
        *(
            (
                f"Full fold of a view beside the same fold, beacons of {whose}",
                results[name].cell(FULL, RATE),
                f"Kafka Streams: {results[name].cell(STREAMS_FULL, RATE)}",
                _goal(results[name], f"beacons per CPU-second: {given} input, full fold"),
            )
            for name, given, whose in (
                ("processor-full", "bench", "the benchmark"),
                ("processor-mux", "mux", "mux-embed"),
            )
        ),
        (
            "Memory of the reduced fold",
            f"{processor.cell(_PLAYHEAD, RSS)} MiB",
            f"Kafka Streams with a cache: {processor.cell(STREAMS, RSS)} MiB",
            _goal(processor, "RSS: 200 ms commits"),
        ),
        (
            f"Server, {cpu}",
            f"{collector.cell(f'{_SERVER} | 20 | 64', _A_BEACON)} µs",
            f"Go: {collector.cell('Go, net/http and franz-go | 20 | 64', _A_BEACON)} µs",
            _goal(collector, f"{measured}: pass-through to Go"),
        ),
        (
            f"Full intake, {cpu}",
            f"{collector.cell(f'{INTAKE} | 20 | 64', _A_BEACON)} µs",
            f"Go, which only passes on: {collector.cell('Go, net/http and franz-go | 20 | 64', _A_BEACON)} µs",
            _goal(collector, f"{measured}: full intake to Go"),
        ),
        *_standstills(results["handover-sigkill"], "kill", "SIGKILL", "is killed (SIGKILL)"),
        *_standstills(results["handover-sigterm"], "term", "SIGTERM", "is stopped (SIGTERM)"),
        (
            "10,000 views merged into a table of 10 million",
            f"{merges.cell('into 10,000,000 views', 2)} CPU s",
            f"into a table of 1 million: {merges.cell('into 1,000,000 views', 2)} CPU s",
            _goal(merges, "merge of 10,000 views into 10,000,000"),
        ),
        (
            "Batch of 100,000 views of an hour, to Postgres",
            f"{whole.cell('views of an hour: all of it', 3)} views/s",
            "goal: 10,000 views/s",
            _goal(whole, "whole path, views of an hour"),
        ),
        (
            "Reprocessing from raw beacons",
            f"{reprocess.cell('folded by the processor', 3)} beacons/s",
            f"SQL written for these views alone: {reprocess.cell('folded by SQL windows', 3)} beacons/s",
            _goal(reprocess, "the same, beacons a second"),
        ),
        (
            "All queries of the page over a year of 100 customers, p95",
            _goal(queries, "page's queries").value,
            "",
            replace(_goal(queries, "page's queries"), value=""),
        ),
    ]
    words = {True: "yes", False: "**no**", None: ""}
    return [
        (
            f"Measured {_dates(results)} on two cores, not always of the same machine: compare within a row."
            " Commands and all other figures: [bench/README.md](bench/README.md)."
        ),
        "",
        "| what | Playhead | beside it | ratio | goal | met |",
        "|---|---|---|---|---|---|",
        *(
            f"| {what} | {ours} | {theirs} | {goal.value} | {goal.goal} | {words[goal.is_met]} |"
            for what, ours, theirs, goal in rows
        ),
    ]


def _standstills(part: Part, way: str, signal: str, ends: str) -> list[tuple[str, str, str, Compared]]:
    return [
        (
            f"Slot with a million open views {ends}, {where}: time without processing",
            f"{part.cell(f'Playhead | {standbys} | {way}', 3)} s",
            f"Kafka Streams: {part.cell(f'Kafka Streams | {standbys} | {way}', 3)} s",
            _goal(part, f"standstill to Kafka Streams', {signal}, {standbys} standbys"),
        )
        for standbys, where in ((1, "with a standby"), (0, "no standby"))
    ]


def _goal(part: Part, what: str) -> Compared:
    """The comparison whose text begins so, of the best configuration that it is compared with."""
    return next(each for each in part.compared if each.what.startswith(what))


def _dates(results: Results) -> str:
    dates = sorted({part.date for part in results.values()})
    return f"on {dates[0]}" if len(dates) == 1 else f"between {dates[0]} and {dates[-1]}"
