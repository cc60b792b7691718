"""A processor slot that runs the tests' join of two topics.

`python -m tests.integration.processor.join_slot BROKER FOLDER NUMBER FORMAT`.
"""

import dataclasses
import sys
from pathlib import Path

import msgspec

from services.processor.engine.windows import Sessions
from services.processor.runtime.plan import Plan
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.standby.roles import RoleTimeouts
from services.processor.settings import ProcessorSettings
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import logs
from tests.integration.parts.installed import PROFILE
from tests.unit.processor.engine.joining import OPEN, Session, application

#: So long that nothing is late and only a record far ahead closes a session: the result does not depend on the machine.
SESSIONS = Sessions(gap_ms=100, grace_ms=3_600_000)

STORES = {
    "1": OPEN,
    "2": dataclasses.replace(
        OPEN,
        format=2,
        encode=msgspec.json.encode,
        decode=msgspec.json.Decoder(list[Session]).decode,
        also_reads={1: OPEN.decode},
    ),
}


def main() -> int:
    """Runs the slot until SIGTERM; 0 when everything folded was committed."""
    bootstrap, folder, number, store_format = sys.argv[1:]
    settings = ProcessorSettings(
        kafka_bootstrap=bootstrap,
        topics_profile=PROFILE,
        slot=f"test/{number}",
        state_dir=Path(folder) / number,
        flush_interval_ms=500,
        waiting_records_max=50,
        poll_records_max=20,
    )
    logs.configure("processor", settings)
    plan = Plan(
        settings,
        application(SESSIONS, STORES[store_format]),
    )
    return 0 if Replica(plan, RoleTimeouts(suspect=2.0, settle=5.0), lambda: None).run(stop_on_signals()) else 1


if __name__ == "__main__":
    sys.exit(main())
