"""Sets up a run with the brokers, network and hosts of production; the verdict is that of every run."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from deploy.topics import create_topics
from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish_rules import FinishRules
from shared.topics import PRESENCE
from tests.chaos.faults import LONG_RUN_SECONDS, SLOTS_MAX
from tests.chaos.production.disturbed import Disturbed, library
from tests.chaos.production.faults import BROKER_SESSION_SECONDS, REPLICA_LAG_SECONDS, ProductionFleet
from tests.chaos.production.network import Network
from tests.chaos.run import STANDBY_NUMBER, Options, Scene, settings_of, standby_settings
from tests.integration.parts.cluster import NODES, Cluster, Place, ReplicatedSettings
from tests.integration.parts.slots import Slot

#: Brokers' clocks step by two minutes: what they stamp in the future is bounded (`PROCESSOR_APPEND_LEAD_MS_MAX`), and what
#: they stamp before may not be late.
CLOCK_MS: Final = 120_000
#: An hour must have 500: some more, for faults that last longer than their time.
FAULTS_PER_HOUR: Final = 540.0
_PROPERTIES: Final = {
    "replica.lag.time.max.ms": str(round(REPLICA_LAG_SECONDS * 1000)),
    "broker.session.timeout.ms": str(round(BROKER_SESSION_SECONDS * 1000)),
}


@contextmanager
def production(options: Options, folder: Path) -> Iterator[Scene]:
    """Three brokers and the slots, each on a host of its own."""
    preload = library(folder)
    slots = [*range(SLOTS_MAX), STANDBY_NUMBER]
    names = [*(f"broker-{node}" for node in range(1, NODES + 1)), *(f"slot-{number}" for number in slots)]
    with ExitStack() as ending:
        network = ending.enter_context(Network(names))
        disturbed = {name: Disturbed(folder / f"host-{name}") for name in names}
        places = {
            node: Place(
                network.hosts[f"broker-{node}"].address,
                network.hosts[f"broker-{node}"].command,
                disturbed[f"broker-{node}"].environ(preload),
            )
            for node in range(1, NODES + 1)
        }
        cluster = ending.enter_context(Cluster(folder, _PROPERTIES, places))
        create_topics(
            ReplicatedSettings(kafka_bootstrap=cluster.bootstrap), [*application(FinishRules()).topics, PRESENCE]
        )

        def make(number: int, **environ: str) -> Slot:
            host = network.hosts[f"slot-{number}"]
            more = {
                **settings_of(options, number, away_ms=CLOCK_MS, PROCESSOR_APPEND_LEAD_MS_MAX="60000"),
                **disturbed[host.name].environ(preload),
            }
            return Slot(
                cluster.bootstrap, folder, number, address=host.address, command=host.command, **(more | environ)
            )

        fleet = ProductionFleet(
            make,
            options.slots,
            options.session_ms / 1000,
            standby=make(STANDBY_NUMBER, **standby_settings()) if options.standby else None,
            cluster=cluster,
            network=network,
            disturbed=disturbed,
            # A short run has too few faults for those that other runs have.
            with_common=options.seconds >= LONG_RUN_SECONDS,
        )
        ending.callback(network.heal)
        yield Scene(cluster.bootstrap, fleet)
