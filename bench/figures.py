"""Tables of documents that gather figures of several results. A figure is a cell of a result's table."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from bench.results import Compared, Part

Results = Mapping[str, Part]

_PLAYHEAD: Final = "Playhead, reduced fold | 200 ms"
_FULL: Final = "Playhead, video_views, the full fold | 200 ms"
_STREAMS: Final = "Kafka Streams 4.3.1, 64 MiB cache | 200 ms"
_QUIX: Final = "Quix Streams 3.28.1 | 200 ms"
#: Columns of the processor's table.
_RATE, _BROKER, _RSS = 2, 4, 5
_INTAKE: Final = "Playhead's collector, the full intake"
_SERVER: Final = "Playhead's server, events produced as they came"
#: Columns of the collector's table: CPU µs a request (the lowest), and a beacon.
_A_REQUEST, _A_BEACON = 3, 4
#: What the load test's players send in a POST.
_LOAD_TEST_BATCH: Final = 2.8


def readme(results: Results) -> list[str]:
    """The table of README.md: what was measured, beside what, and whether the goal is met."""
    processor, collector, handover = results["processor"], results["collector"], results["handover"]
    term, queries = results["handover-sigterm"], results["finalizer-queries"]
    merges, whole, reprocess = (results[f"finalizer-{name}"] for name in ("merges", "whole", "reprocess"))
    beacons = "beacons a CPU-second, commits every 200 ms"
    cpu = "CPU a beacon, 20 a POST, 64 connections"
    rows = [
        (
            f"Reduced fold, {beacons}",
            processor.cell(_PLAYHEAD, _RATE),
            f"Kafka Streams with a cache: {processor.cell(_STREAMS, _RATE)}",
            _goal(processor, "beacons per CPU-second: 200 ms commits, reduced fold to Kafka Streams"),
        ),
        (
            f"Full fold of a view, {beacons}",
            processor.cell(_FULL, _RATE),
            f"Kafka Streams, reduced fold: {processor.cell(_STREAMS, _RATE)}",
            _goal(processor, "beacons per CPU-second: 200 ms commits, full fold"),
        ),
        (
            f"Reduced fold, {beacons}",
            processor.cell(_PLAYHEAD, _RATE),
            f"Quix Streams: {processor.cell(_QUIX, _RATE)}",
            _goal(processor, "beacons per CPU-second: 200 ms commits, reduced fold to Quix"),
        ),
        (
            "Memory of the reduced fold",
            f"{processor.cell(_PLAYHEAD, _RSS)} MiB",
            f"Kafka Streams with a cache: {processor.cell(_STREAMS, _RSS)} MiB",
            _goal(processor, "RSS: 200 ms commits"),
        ),
        (
            f"Server, {cpu}",
            f"{collector.cell(f'{_SERVER} | 20 | 64', _A_BEACON)} µs",
            f"Go: {collector.cell('Go, net/http and franz-go | 20 | 64', _A_BEACON)} µs",
            _goal(collector, f"{cpu}: pass-through to Go"),
        ),
        (
            f"Full intake, {cpu}",
            f"{collector.cell(f'{_INTAKE} | 20 | 64', _A_BEACON)} µs",
            f"Go, which only passes on: {collector.cell('Go, net/http and franz-go | 20 | 64', _A_BEACON)} µs",
            _goal(collector, f"{cpu}: full intake to Go"),
        ),
        *_standstills(handover, "kill", "SIGKILL"),
        *_standstills(term, "term", "SIGTERM"),
        (
            "10,000 views merged into a table of 10 million",
            f"{merges.cell('into 10,000,000 views', 1)} s",
            f"into a table of 1 million: {merges.cell('into 1,000,000 views', 1)} s",
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
        f"Measured {_dates(results)} on two cores. Commands and all other figures: [bench/README.md](bench/README.md).",
        "",
        "| what | Playhead | beside it | ratio | goal | met |",
        "|---|---|---|---|---|---|",
        *(
            f"| {what} | {ours} | {theirs} | {goal.value} | {goal.goal} | {words[goal.is_met]} |"
            for what, ours, theirs, goal in rows
        ),
    ]


def cores(results: Results) -> list[str]:
    """What one core does, for docs/capacity.md."""
    post, further = _post_us(results["collector"])
    processor, whole, hour = (results[name] for name in ("processor", "finalizer-whole", "finalizer-hour"))
    queries, handover = results["finalizer-queries"], results["handover"]
    medians = [queries.number(span, 1) for span in ("1 ", "24 ", "168 ", "720 ", "8,760 ")]
    highest = max(queries.number(span, 2) for span in ("1 ", "24 ", "168 ", "720 ", "8,760 "))
    bench = ".venv/bin/python -m bench"
    return [
        "| service | figure | command |",
        "|---|---|---|",
        (
            f"| collector | a POST takes {post:.0f} CPU µs, each further beacon in it {further:.0f} CPU µs |"
            f" `{bench}.collector --only full` |"
        ),
        *(
            f"| collector, {size:g} a POST | {_beacons_a_second(post, further, size):,} beacons a CPU-second | the same |"
            for size in (1, _LOAD_TEST_BATCH, 20)
        ),
        (
            f"| processor, `video_views` | {processor.cell(_FULL, _RATE)} beacons a CPU-second, commits every 200 ms |"
            f" `{bench}.processor` |"
        ),
        f"| broker, beside `video_views` | {processor.cell(_FULL, _BROKER)} CPU µs a beacon | the same |",
        (
            f"| finalizer, raw records into `bronze` | {whole.cell('views of a day: bronze', 4)} a CPU-second |"
            f" `{bench}.finalizer --only whole --whole 100000 --codegen` |"
        ),
        *(
            f"| finalizer, bronze to Postgres, views of {spread} | {whole.cell(f'views of {spread}: all of it', 4)} views a"
            f" CPU-second, {whole.cell(f'views of {spread}: all of it', 3)} a second on two cores | the same |"
            for spread in ("an hour", "a day")
        ),
        (
            f"| finalizer, recount of an hour of a million views | {1e6 / hour.number('of the hour', 4):.0f} CPU µs a view |"
            f" `{bench}.finalizer --only hour --hour 1000000 --codegen` |"
        ),
        (
            f"| dashboard, all queries for a span | {min(medians):.0f} to {max(medians):.0f} ms (p50), at most {highest:.0f} ms"
            f" (p95), up to a year of 100 customers | `{bench}.finalizer --only queries` |"
        ),
        (
            f"| takeover of a million views | {handover.cell('1,000,000', 2)} changelog rows a CPU-second;"
            f" {handover.cell('1,000,000', 3)} s where a standby has them | `{bench}.handover` |"
        ),
    ]


def views(results: Results) -> list[str]:
    """What a view takes, for docs/capacity.md."""
    sizes, open_view, memory = results["sizes"], results["memory-views"], results["memory"]
    size_command, view_command = (
        f"`.venv/bin/python -m {sizes.command.split()[-1]}`",
        f"`.venv/bin/{open_view.command}`",
    )
    changelog = results["processor"].cell(_FULL, 7)
    return [
        "| what | figure | command |",
        "|---|---|---|",
        (
            f"| topic `beacons` on disk | {sizes.cell('topic beacons', 1)} B a view, {sizes.cell('topic beacons', 2)} B a"
            f" beacon | {size_command} |"
        ),
        (
            f"| changelog on disk, before compaction | {sizes.cell('topic video_views.changelog', 1)} B a view,"
            f" {sizes.cell('topic video_views.changelog', 2)} B a beacon | {size_command} |"
        ),
        f"| changelog, a beacon of the processor's benchmark | {changelog} | `.venv/bin/python -m bench.processor` |",
        (
            f"| changelog, after compaction | {open_view.cell('in the changelog', 1)} B an open view, uncompressed |"
            f" {view_command} |"
        ),
        f"| slot's disk | {open_view.cell('on the slot', 1)} B an open view of the benchmark | {view_command} |",
        f"| topic `views` on disk | {sizes.cell('topic views', 1)} B a view | {size_command} |",
        f"| warehouse, table `views` | {sizes.cell('table views', 1)} B a view | {size_command} |",
        f"| warehouse, table `bronze` | {sizes.cell('table bronze', 2)} B a beacon | {size_command} |",
        (
            "| slot's memory, a million open views on 64 partitions |"
            f" {memory.cell('restored from the changelog', 1)} MiB at most after a restore,"
            f" {memory.cell('a backlog', 1)} MiB while it folds a backlog | `.venv/bin/python -m bench.memory` |"
        ),
    ]


def planned(results: Results) -> dict[str, float]:
    """What the plan in docs/capacity.md is calculated from: rates of one core, rounded down."""
    post, further = _post_us(results["collector"])
    whole = results["finalizer-whole"]
    return {
        "collector": _beacons_a_second(post, further, 1),
        "slot": results["processor"].number(_FULL, _RATE),
        "bronze": whole.number("views of a day: bronze", 4),
        "views": whole.number("views of an hour: all of it", 4),
        "hour_us": 1e6 / results["finalizer-hour"].number("of the hour", 4),
    }


def _standstills(part: Part, way: str, signal: str) -> list[tuple[str, str, str, Compared]]:
    return [
        (
            f"Slot with a million open views ends by {signal}, {where}: time without processing",
            f"{part.cell(f'Playhead | {standbys} | {way}', 3)} s",
            f"Kafka Streams: {part.cell(f'Kafka Streams | {standbys} | {way}', 3)} s",
            _goal(part, f"standstill to Kafka Streams', {signal}, {standbys} standbys"),
        )
        for standbys, where in ((1, "with a standby"), (0, "no standby"))
    ]


def _goal(part: Part, what: str) -> Compared:
    """The comparison whose text begins so, of the best configuration that it is compared with."""
    return next(each for each in part.compared if each.what.startswith(what))


def _post_us(collector: Part) -> tuple[float, float]:
    """CPU µs of a POST with one beacon, and of each further beacon: means over the numbers of connections."""
    alone = [collector.number(f"{_INTAKE} | 1 | {connections} ", _A_REQUEST) for connections in (64, 512)]
    batch = [collector.number(f"{_INTAKE} | 20 | {connections} ", _A_REQUEST) for connections in (64, 512)]
    one = sum(alone) / len(alone)
    return one, (sum(batch) / len(batch) - one) / 19


def _beacons_a_second(post_us: float, further_us: float, size: float) -> int:
    """To the full thousand below."""
    return int(size / (post_us + (size - 1) * further_us) * 1e3) * 1_000


def _dates(results: Results) -> str:
    dates = sorted({part.date for part in results.values()})
    return f"on {dates[0]}" if len(dates) == 1 else f"between {dates[0]} and {dates[-1]}"
