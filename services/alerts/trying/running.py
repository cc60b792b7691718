"""Runs trials: reads minutes of the serving database day by day, and gives them to a process that judges them."""

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
import structlog

from services.alerts.core.rules import RuleBody, applied
from services.alerts.core.trial import Asked, Tried, begin_ms, dimensions_read
from services.alerts.store.minutes import read_minutes
from services.rim.database.pool import Postgres
from services.rim.turns.question_limits import InTurn
from shared.schemas.live_minute import MINUTE_MS

log = structlog.get_logger(__name__)

#: At a time, of all organisations and of one; others wait for their turn. The third is of one, with those that wait.
TRIALS_AT_ONCE: Final = 2
TRIALS_AT_ONCE_OF_ONE: Final = 1
TRIALS_MAX: Final = 4
SECONDS_MAX: Final = 60.0
#: What one question to Postgres reads: a day of the largest customer's dimension has about 5 MB.
_MINUTES_AT_ONCE: Final = 24 * 60
#: What an answer has at most; 50 incidents of 20 slices have a tenth of it.
_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


class TrialTooLong(RuntimeError):
    """The trial took longer than it may."""


class Trying:
    """Trials over the serving database."""

    def __init__(self, serving: Postgres, now_ms: Callable[[], int]) -> None:
        self._serving = serving
        self._now_ms = now_ms
        self._turns = InTurn(at_once=TRIALS_AT_ONCE_OF_ONE, most=TRIALS_MAX, of_all=TRIALS_AT_ONCE)

    async def run(self, body: RuleBody, organisation_id: str) -> Tried:
        """The incidents that a checked rule would have found in the last seven days, once it is the organisation's turn.

        Raises `TooManyQuestions`, `TrialTooLong`, and as `Postgres.ask` does.
        """
        async with self._turns.of(organisation_id):
            try:
                async with asyncio.timeout(SECONDS_MAX):
                    return await self._judge(body)
            except TimeoutError:
                raise TrialTooLong from None

    async def _judge(self, body: RuleBody) -> Tried:
        until_ms = self._now_ms() // MINUTE_MS * MINUTE_MS
        # The name of a rule that is not yet one.
        rule = msgspec.structs.replace(applied("trial", 1, body), is_enabled=True)
        asked = Asked(
            rule=rule,
            customer_id=body.customer,
            from_ms=begin_ms(msgspec.structs.replace(rule, condition="threshold"), until_ms),
            until_ms=until_ms,
        )
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.alerts.trying"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_ANSWER_BYTES_MAX,
            # Nothing of this process' settings, which hold secrets.
            env={name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ},
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            await self._feed(child.stdin, asked)
            answer = await child.stdout.read()
            if await child.wait() != 0:
                raise RuntimeError("the trial failed; its last lines are in the log of this process")
            return msgspec.json.decode(answer, type=Tried)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()

    async def _feed(self, stdin: asyncio.StreamWriter, asked: Asked) -> None:
        stdin.write(msgspec.json.encode(asked) + b"\n")
        first, last = begin_ms(asked.rule, asked.until_ms) // MINUTE_MS, asked.until_ms // MINUTE_MS
        dimensions = dimensions_read(asked.rule)
        for minute in range(first, last, _MINUTES_AT_ONCE):
            until = min(minute + _MINUTES_AT_ONCE, last)
            read = partial(
                read_minutes, customer_id=asked.customer_id, dimensions=dimensions, first=minute, until=until
            )  # fmt: skip
            for row in await self._serving.ask(read):
                stdin.write(msgspec.json.encode(row) + b"\n")
                await stdin.drain()
        stdin.close()
