"""A processor slot that runs the application `reports` of CONTRIBUTING: `python -m tests.integration.applications.guide_slot`."""

import os
import sys

from services.processor.runtime.plan import Plan
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.standby.roles import RoleTimeouts
from services.processor.settings import ProcessorSettings
from services.rim.process.stopping import stop_on_signals
from services.rim.process.threads import Threads
from services.rim.telemetry import logs
from tests import guide


def main() -> int:
    """Runs the slot until SIGTERM; 0 when everything folded was committed."""
    settings = ProcessorSettings.load(os.environ)
    logs.configure("processor", settings)
    threads = Threads()
    threads.watch()
    plan = Plan(settings, guide.application("reports"))
    replica = Replica(plan, RoleTimeouts(suspect=2.0, settle=5.0), threads.check)
    return 0 if replica.run(stop_on_signals()) else 1


if __name__ == "__main__":
    sys.exit(main())
