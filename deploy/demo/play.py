"""Plays simulated viewers against a running system, and waits until all their data has landed and does not change any more."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from deploy.demo.comparing.watch import Watch
from deploy.demo.display import Display
from deploy.demo.shortened import TRIGGER_SECONDS
from deploy.demo.viewers.crowd import Crowd
from deploy.local.process import DeadlinePassed
from deploy.local.supervisor import Supervisor

#: After the last player has gone: the longest finish time-out, the warehouse's batches, and air for a machine that is several times
#: slower: it is waited no longer than needed.
LAND_SECONDS_MAX: Final = 300.0
#: What looks right once must still do so when services had time to write again: commits, and a batch of views.
SETTLE_SECONDS: Final = 2.0 + TRIGGER_SECONDS["trigger_seconds"]
#: Players repeat unanswered POSTs for a minute at most; then they end, one way or the other.
_PLAYERS_EXTRA_SECONDS_MAX: Final = 90.0
_REFRESH_SECONDS: Final = 2.0


class Playing:
    """One crowd's run. `supervisor` has the players' process, and is polled all the while for a process that died."""

    def __init__(self, supervisor: Supervisor, watch: Watch, display: Display) -> None:
        self._supervisor = supervisor
        self._watch = watch
        self._display = display

    def play(self, crowd: Crowd, url: str, truth: Path) -> None:
        """Returns when the players are gone. Raises `ProcessDied`, or `DeadlinePassed` where they do not end."""
        self._display.step(crowd.summary)
        players = crowd.service(url, truth)
        self._supervisor.start(players)
        deadline = time.monotonic() + crowd.seconds + _PLAYERS_EXTRA_SECONDS_MAX
        while self._supervisor.exit_code(players.name) is None:
            if time.monotonic() > deadline:
                raise DeadlinePassed(f"the players did not end; see {self._supervisor.log_file(players.name)}")
            self._refresh("playing")

    def land(self, wait_for_warehouse: Callable[[], object]) -> None:
        """Returns when no line of the table differs and none did for a while, or after a time: then some do."""
        self._display.step("players are gone; waiting until every view is finished and in the warehouse")
        wait_for_warehouse()
        deadline = time.monotonic() + LAND_SECONDS_MAX
        while not self._watch.is_settled() and time.monotonic() < deadline:
            self._refresh("landing")
        if not self._watch.is_settled():
            return
        self._display.step(f"no line differs: looking whether it stays so for {SETTLE_SECONDS:g} s")
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            self._refresh("settling")

    def _refresh(self, doing: str) -> None:
        until = time.monotonic() + _REFRESH_SECONDS
        for news in self._watch.refresh():
            self._display.step(news)
        self._display.progress(doing, self._watch.lines())
        while True:
            self._supervisor.check()
            rest = until - time.monotonic()
            if rest <= 0:
                return
            time.sleep(min(rest, 0.2))
