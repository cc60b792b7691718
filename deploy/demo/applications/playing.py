"""Plays the parts of the demo, one after the other, each with a slot of its own."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from deploy.demo import accounts
from deploy.demo.applications.part import Part, Running
from deploy.demo.comparing.compare import Line
from deploy.demo.display import Display
from deploy.demo.services import DemoServices
from deploy.local.process import DeadlinePassed
from deploy.local.supervisor import Supervisor
from shared.settings import Settings

#: For one step of a part: a slot, a commit, a batch of the warehouse.
STEP_SECONDS_MAX: Final = 120.0


def play_all(
    parts: Sequence[Part], services: DemoServices, supervisor: Supervisor, settings: Settings, display: Display
) -> list[Line]:
    """Starts the slots, plays, and shows what came out; the lines of all parts.

    Raises `ProcessDied`, `DeadlinePassed` when a slot is not ready in time, `Refused`.
    """
    slots = services.slots()
    for slot in slots:
        supervisor.start(slot)
    supervisor.wait_ready(*(slot.name for slot in slots))
    lines: list[Line] = []
    for part in parts:
        display.step(f"{part.application} runs (pid {supervisor.pid(part.application)})")
        running = Running(
            settings,
            services.collector_url,
            services.lookup_url(part.application),
            services.lookup_token,
            services.warehouse,
            services.page_url,
            partial(accounts.link, services.postgres_dsn, services.page_url),
            lambda condition: _holds(supervisor, condition),
            display.say,
        )
        lines += part.play(running)
    if lines:
        display.final(lines)
        right = all(line.ok for line in lines)
        display.step("all applications report what was sent" if right else "THERE ARE DIFFERENCES, see above")
    return lines


def _holds(supervisor: Supervisor, condition: Callable[[], bool]) -> bool:
    """Whether it holds before its time is over; every process is watched meanwhile."""
    try:
        supervisor.wait(condition, STEP_SECONDS_MAX, "a part of the demo")
    except DeadlinePassed:
        return False
    return True
