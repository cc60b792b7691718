"""Beacons per CPU-second of the processor, compared with Kafka Streams and Quix Streams: `python -m bench.processor [--only NAME
...]`.

One broker, one topic of beacons, loaded once; each system drains it from its beginning with a group, topics and a store of its own,
one after the other, in rounds. The measured part of the topic is from one half to nine tenths: CPU of the whole process over the
offsets that it committed meanwhile. Before any speed is printed, every view is checked: one missing, doubled or wrong row fails the
run. Other load on the machine affects all systems; compare the ratios.

The figures go to `.local/bench`, from which `python -m bench.report` writes bench/README.md.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.peers import setup as peers_setup
from bench.processor import report
from bench.processor.beacons import Loaded, load
from bench.processor.captured import load_captured
from bench.processor.check import check, count_committed
from bench.processor.measure import Figures, topic_bytes, watch
from bench.processor.systems import ALL, FINISH_CLEAN_MS, Peers, Run, System
from bench.processor.topics_of_runs import PARTITIONS, TopicsOfRuns
from bench.report import results
from deploy.local.broker import Broker
from deploy.local.process import Child, wait_until

#: Inputs that come through the real intake, and who makes rows of them.
CAPTURED: Final = {"mux": ("playhead-full-200", "kafka-streams-full-200"), "native": ("playhead-full-200",)}
_DRAIN_SECONDS_MAX: Final = 900.0
_ROWS_SECONDS_MAX: Final = 90.0
_STOP_SECONDS_MAX: Final = 60.0


def drain(system: System, run: Run, broker: Broker, loaded: Loaded, fold: str) -> Figures:
    """Lets one system drain the topic, and checks every view; `fold` says what its rows are compared by."""
    folder, name = run.folder, run.name
    folder.mkdir()
    topics = TopicsOfRuns(broker.bootstrap)
    rows, changelogs, others = system.rows_topic(name), system.changelog_topics(name), system.other_topics(name)
    topics.create([rows, *others], changelogs if system.family == "playhead" else [])
    child = Child(system.title, system.command(run), log_file=folder / "log")
    child.start()
    try:
        drained = watch(child, broker, name, topics.ends("beacons"), _DRAIN_SECONDS_MAX)
        # The last views of the full fold end a second of the clock after their last beacon.
        everything = len(loaded.views)
        wait_until(
            lambda: count_committed(broker.bootstrap, rows) >= everything,
            _ROWS_SECONDS_MAX,
            f"rows in {rows}",
            every=1.0,
        )
    finally:
        child.stop(_STOP_SECONDS_MAX)
    commits = [float(line) for line in run.commits_file.read_text().split()]
    figures = Figures(
        drained,
        check(broker.bootstrap, rows, loaded.views, fold=fold),
        sorted(commits[len(commits) // 2 :]),
        sum(topic_bytes(folder.parent / "broker" / "data", one) for one in changelogs) / loaded.beacons,
        sum(count_committed(broker.bootstrap, one) for one in changelogs) / loaded.beacons,
    )
    topics.delete([rows, *others, *changelogs], name if system.is_application else None)
    shutil.rmtree(folder / "state", ignore_errors=True)
    return figures


def _loaded(bootstrap: str, client: str, views: int, in_flight: int) -> Loaded:
    if client == "bench":
        return load(bootstrap, "beacons", PARTITIONS, views=views, in_flight=in_flight)
    return load_captured(bootstrap, "beacons", client, views=views, in_flight=in_flight, clean_ms=FINISH_CLEAN_MS)


def set_up(families: set[str]) -> Peers:
    """Builds the peers of these families where that was not done yet."""
    jars, classes = peers_setup.kafka_streams() if "kafka streams" in families else (Path(), Path())
    return Peers(jars, classes, peers_setup.quix_python() if "quix" in families else Path())


def main() -> int:
    """The benchmark's exit code: 1 when a row was missing, doubled or wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.processor", description=__doc__)
    parser.add_argument("--views", type=int, default=100_000)
    parser.add_argument("--in-flight", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--input", choices=["bench", *CAPTURED], default="bench", help="whose beacons")
    parser.add_argument("--only", nargs="+", choices=[*ALL], metavar="NAME", help=", ".join(ALL))
    given = parser.parse_args()
    able = CAPTURED.get(given.input, tuple(ALL))
    systems = {name: ALL[name] for name in given.only or able}
    if unable := systems.keys() - set(able):
        parser.error(f"of input {given.input} no rows are made by {', '.join(sorted(unable))}")
    peers = set_up({system.family for system in systems.values()})
    with tempfile.TemporaryDirectory(prefix="bench-processor-") as temporary:
        folder = Path(temporary)
        with Broker(folder / "broker") as broker:
            TopicsOfRuns(broker.bootstrap).begin()
            began = time.monotonic()
            loaded = _loaded(broker.bootstrap, given.input, given.views, given.in_flight)
            print(report.input_summary(loaded, given.in_flight, time.monotonic() - began), flush=True)
            drained: dict[str, list[Figures]] = {name: [] for name in systems}
            for number in range(given.rounds):
                for name, system in systems.items():
                    run = Run(system.group(f"{name}-{number}"), broker.bootstrap, folder / f"{name}-{number}", peers)
                    fold = system.fold if given.input == "bench" else "captured"
                    figures = drain(system, run, broker, loaded, fold)
                    if not figures.checked.is_good:
                        print(f"{name}: {figures.checked}")
                        return 1
                    drained[name].append(figures)
                    print(report.run_summary(name, figures), flush=True)
                    kept = report.gathered(
                        {name: all_of for name, all_of in drained.items() if all_of},
                        loaded,
                        given.in_flight,
                        given.input,
                    )
    results.keep(report.part(kept))
    print("\n".join([*report.table(kept), "", *results.table([report.part(kept)])]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
