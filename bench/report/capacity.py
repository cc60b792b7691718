"""The tables of docs/capacity.md: what one core does, what a view takes, and what a million viewers cost."""

from typing import Final

from bench.report.figures import BROKER, FULL, INTAKE, RATE, RSS, STREAMS, STREAMS_FULL, Results
from bench.report.results import Part

#: What the load test's players send in a POST.
_LOAD_TEST_BATCH: Final = 2.8
#: Column of the collector's table: CPU µs a request, the lowest.
_A_REQUEST: Final = 3
#: What docs/capacity.md assumes: a beacon every 10 s of each viewer, views of ten minutes.
MILLION: Final = 1_000_000
_BEACON_SECONDS: Final = 10
_VIEW_SECONDS: Final = 600
_DAY_SECONDS: Final = 86_400
_MONTH_HOURS: Final = 730
#: US dollars an hour, and cores: an m7g.large on demand, Linux, us-east-1 (docs/capacity.md names the source).
_HOST_PRICE, _HOST_CORES = 0.0816, 2
#: US dollars for a thousand views: the public price of a hosted service (docs/capacity.md names the source).
_HOSTED_PRICE: Final = 0.65


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
            f"| processor, `video_views` | {processor.cell(FULL, RATE)} beacons a CPU-second, commits every 200 ms |"
            f" `{bench}.processor` |"
        ),
        f"| broker, beside `video_views` | {processor.cell(FULL, BROKER)} CPU µs a beacon | the same |",
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
    changelog = results["processor"].cell(FULL, 7)
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
            f" {memory.cell('a backlog', 1)} MiB while it folds a backlog | `.venv/bin/python -m bench.state.memory` |"
        ),
    ]


def planned(results: Results) -> dict[str, float]:
    """What the plan in docs/capacity.md is calculated from: rates of one core, rounded down."""
    post, further = _post_us(results["collector"])
    whole = results["finalizer-whole"]
    return {
        "collector": _beacons_a_second(post, further, 1),
        "slot": results["processor"].number(FULL, RATE),
        "bronze": whole.number("views of a day: bronze", 4),
        "views": whole.number("views of an hour: all of it", 4),
        "hour_us": 1e6 / results["finalizer-hour"].number("of the hour", 4),
    }


def million(results: Results) -> list[str]:
    """What a million viewers at a time cost, without reserves, beside a Kafka Streams that does the reduced fold alone."""
    rates, processor = planned(results), results["processor"]
    beacons, ended = MILLION / _BEACON_SECONDS, MILLION / _VIEW_SECONDS
    streams_rate = processor.number(STREAMS, RATE)
    ours = {
        "collectors, 1 beacon a POST": beacons / rates["collector"],
        "processing": beacons / rates["slot"],
        "brokers, beside processing": beacons * processor.number(FULL, BROKER) / 1e6,
        "finalizer: raw beacons": beacons / rates["bronze"],
        "finalizer: views, and hours counted twice": ended / rates["views"]
        + 2 * rates["hour_us"] * ended * 3_600 / 60e6,
    }
    theirs = {
        "processing": beacons / streams_rate,
        "brokers, beside processing": beacons * processor.number(STREAMS, BROKER) / 1e6,
    }
    cores_ours = sum(ours.values())
    dollars = 2 * cores_ours * _HOST_PRICE / _HOST_CORES * _MONTH_HOURS
    thousands = ended * 3_600 * _MONTH_HOURS / 1_000
    sizes, memory = results["sizes"], results["memory"]
    beacon_bytes, bronze_bytes = sizes.number("topic beacons", 2), sizes.number("table bronze", 2)
    view_bytes = sizes.number("table views", 1)
    return [
        "| a million viewers at a time | Playhead | Kafka Streams, reduced fold |",
        "|---|---|---|",
        *(
            f"| cores: {what} | {used:.2f} | {f'{theirs[what]:.2f}' if what in theirs else 'has none'} |"
            for what, used in ours.items()
        ),
        f"| cores: all | {cores_ours:.0f} | |",
        *_full_fold(processor, beacons, ours["processing"]),
        (
            f"| memory of processing | {memory.cell('a backlog', 1)} MiB with a million open views |"
            f" {processor.cell(STREAMS, RSS)} MiB with 50,000 |"
        ),
        f"| network into collectors and topic `beacons`, each | {beacons * beacon_bytes / 1e6:.0f} MB/s | |",
        f"| disk of topic `beacons` a day, one copy | {beacons * beacon_bytes * _DAY_SECONDS / 1e12:.1f} TB | |",
        (
            f"| disk of the warehouse a day | {beacons * bronze_bytes * _DAY_SECONDS / 1e12:.1f} TB of raw beacons,"
            f" {ended * view_bytes * _DAY_SECONDS / 1e9:.0f} GB of views | has none |"
        ),
        (
            f"| price of twice these cores | {dollars:,.0f} USD a month, {dollars / thousands * 100:.2f} US cents for 1,000 views |"
            " the same, a core |"
        ),
        (
            f"| a hosted service's bill at the listed price, unverified | {thousands * _HOSTED_PRICE:,.0f} USD a month,"
            f" {_HOSTED_PRICE * 100:.0f} US cents for 1,000 views | |"
        ),
    ]


def _full_fold(processor: Part, beacons: float, ours: float) -> list[str]:
    """The row of the peer that makes the full fold of one client, where a run has it."""
    try:
        rate = processor.number(STREAMS_FULL, RATE)
    except LookupError:
        return []
    return [f"| cores: processing, the full fold of one client there | {ours:.2f} | {beacons / rate:.2f} |"]


def _post_us(collector: Part) -> tuple[float, float]:
    """CPU µs of a POST with one beacon, and of each further beacon: means over the numbers of connections."""
    alone = [collector.number(f"{INTAKE} | 1 | {connections} ", _A_REQUEST) for connections in (64, 512)]
    batch = [collector.number(f"{INTAKE} | 20 | {connections} ", _A_REQUEST) for connections in (64, 512)]
    one = sum(alone) / len(alone)
    return one, (sum(batch) / len(batch) - one) / 19


def _beacons_a_second(post_us: float, further_us: float, size: float) -> int:
    """To the full thousand below."""
    return int(size / (post_us + (size - 1) * further_us) * 1e3) * 1_000
