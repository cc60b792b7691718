"""Plays the parts of the demo at the same time, each with a slot of its own."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
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
#: Rows come by the batch: to look for them more often would take a core's time from the batches.
_LOOK_SECONDS: Final = 0.5


class Ended(RuntimeError):
    """The run ends, and this part with it."""


def play_all(
    parts: Sequence[Part], services: DemoServices, supervisor: Supervisor, settings: Settings, display: Display
) -> list[Line]:
    """Starts the slots, plays, and shows what came out; the lines of all parts, in their order.

    Raises `ProcessDied`, `DeadlinePassed` when a slot is not ready in time, `Refused`.
    """
    if not parts:
        return []
    slots = services.slots()
    for slot in slots:
        supervisor.start(slot)
    supervisor.wait_ready(*(slot.name for slot in slots))
    ended = threading.Event()
    plays: list[Callable[[], Sequence[Line]]] = []
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
            partial(holds, supervisor, ended),
            display.say,
        )
        plays.append(partial(part.play, running))
    lines = at_once(plays, ended)
    display.final(lines)
    right = all(line.ok for line in lines)
    display.step("all applications report what was sent" if right else "THERE ARE DIFFERENCES, see above")
    return lines


def at_once(plays: Sequence[Callable[[], Sequence[Line]]], ended: threading.Event) -> list[Line]:
    """The lines of all plays, in their order. Each waits most of its time, for a commit or the warehouse's next batch.

    The first error is raised at once, and Ctrl-C too. `ended` is set then: what still plays ends at its next wait.
    """
    threads = ThreadPoolExecutor(len(plays), thread_name_prefix="part")
    try:
        played = [threads.submit(play) for play in plays]
        wait(played, return_when=FIRST_EXCEPTION)
        failed = [one for one in played if one.done() and one.exception() is not None]
        for one in failed:
            one.result()
        return [line for one in played for line in one.result()]
    finally:
        ended.set()
        threads.shutdown(wait=False, cancel_futures=True)


def holds(supervisor: Supervisor, ended: threading.Event, condition: Callable[[], bool]) -> bool:
    """Whether it holds before its time is over; every process is watched meanwhile. Raises `Ended` when the run ends."""

    def has_come() -> bool:
        if ended.is_set():
            raise Ended
        return condition()

    try:
        supervisor.wait(has_come, STEP_SECONDS_MAX, "a part of the demo", every=_LOOK_SECONDS)
    except DeadlinePassed:
        return False
    return True
