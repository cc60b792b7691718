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

from bench import peers_setup, results
from bench.processor import report
from bench.processor.beacons import Loaded, load
from bench.processor.check import check, count_committed
from bench.processor.measure import Figures, topic_bytes, watch
from bench.processor.systems import ALL, Peers, Run, System
from bench.processor.topics_of_runs import PARTITIONS, TopicsOfRuns
from deploy.local.broker import Broker
from deploy.local.process import Child, wait_until

_DRAIN_SECONDS_MAX: Final = 900.0
_ROWS_SECONDS_MAX: Final = 90.0
_STOP_SECONDS_MAX: Final = 60.0


def drain(system: System, run: Run, broker: Broker, loaded: Loaded) -> Figures:
    """Lets one system drain the topic, and checks every view."""
    folder, name = run.folder, run.name
    folder.mkdir()
    topics = TopicsOfRuns(broker.bootstrap)
    rows, changelog = system.rows_topic(name), system.changelog_topic(name)
    topics.create([rows], [changelog] if system.family == "playhead" else [])
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
        check(broker.bootstrap, rows, loaded.views, fold=system.fold),
        sorted(commits[len(commits) // 2 :]),
        topic_bytes(folder.parent / "broker" / "data", changelog) / loaded.beacons,
        count_committed(broker.bootstrap, changelog) / loaded.beacons,
    )
    topics.delete([rows, changelog], name if system.fold == "full" else None)
    shutil.rmtree(folder / "state", ignore_errors=True)
    return figures


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
    parser.add_argument("--only", nargs="+", choices=[*ALL], default=[*ALL], metavar="NAME", help=", ".join(ALL))
    given = parser.parse_args()
    systems = {name: ALL[name] for name in given.only}
    peers = set_up({system.family for system in systems.values()})
    with tempfile.TemporaryDirectory(prefix="bench-processor-") as temporary:
        folder = Path(temporary)
        with Broker(folder / "broker") as broker:
            TopicsOfRuns(broker.bootstrap).begin()
            began = time.monotonic()
            loaded = load(broker.bootstrap, "beacons", PARTITIONS, views=given.views, in_flight=given.in_flight)
            print(report.input_summary(loaded, given.in_flight, time.monotonic() - began), flush=True)
            drained: dict[str, list[Figures]] = {name: [] for name in systems}
            for number in range(given.rounds):
                for name, system in systems.items():
                    group = "video_views" if system.fold == "full" else f"{name}-{number}"
                    run = Run(group, broker.bootstrap, folder / f"{name}-{number}", peers)
                    figures = drain(system, run, broker, loaded)
                    if not figures.checked.is_good:
                        print(f"{name}: {figures.checked}")
                        return 1
                    drained[name].append(figures)
                    print(report.run_summary(name, figures), flush=True)
                    kept = report.gathered(
                        {name: all_of for name, all_of in drained.items() if all_of}, loaded, given.in_flight
                    )
    results.keep(report.part(kept))
    print("\n".join([*report.table(kept), "", *results.table([report.part(kept)])]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
