"""Exports: takes up what is queued, one job at a time, organisations in turn; writes its rows, and deletes what has expired."""

import asyncio
import itertools
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from services.query.answering import Answering, TooManyRows, Unsettled
from services.query.core.customers import Admit
from services.query.core.problems import Wrong
from services.query.core.resources import search
from services.query.core.resources.exports import exports
from services.query.core.resources.exports import tables as export_tables
from services.query.core.resources.exports.exports import EXPORTS_MAX, Job, NewExport, Wanted
from services.query.listing import Lists
from services.query.rim.engine import TooLarge
from services.query.rim.export_files import ExportFiles
from services.query.rim.export_writing import TooManyRowsToExport, write_batches, write_rows
from services.query.rim.warehouse import WarehouseAway
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.turns.question_limits import InTurn

log = structlog.get_logger(__name__)

#: How often the folder is read: other processes may share it, and what was away for a job may be back.
LOOK_SECONDS: Final = 5.0
#: Requests of an organisation that read the list of all jobs or wait for that; others are refused.
LISTS_MAX: Final = 32
_HOUR_MS: Final = 3_600_000
#: Passes by itself: the job stays queued. Asked after `_FAILED`, because `TimeoutError` is an `OSError`.
_PASSING: Final = (PostgresAway, NotPublished, WarehouseAway, Unsettled, OSError)
#: Of what ends a job, why.
_FAILED: Final[dict[type[Exception], str]] = {
    TooManyRowsToExport: "it has more rows than an export may have: ask for a shorter range or a filter",
    TooManyRows: "it reads too many views: ask for a shorter range",
    TooLarge: "it needs too much memory: ask for a shorter range, or sort by time",
    TimeoutError: "it took too long: ask for a shorter range",
    QueryRefused: "Postgres refuses the statement",
    Wrong: "this version does not know what it asks for",
}
#: Of an error of another kind.
_UNKNOWN: Final = "it cannot be written: the log of `query` says why"


class TooManyExports(RuntimeError):
    """The organisation has as many exports, or exports under way, as one may."""


class NoRoomForExports(RuntimeError):
    """The folder of exports is full, or the organisation has as many bytes in it as are free."""


class Exporting:
    """Belongs to one event loop. Several processes may share the folder: each job is one's."""

    def __init__(
        self,
        files: ExportFiles,
        answering: Answering,
        *,
        rows_max: int,
        seconds_max: float,
        bytes_max: int,
        hours: int,
        under_way_max: int,
        days_max: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._files = files
        self._answering = answering
        self._rows_max = rows_max
        self._seconds_max = seconds_max
        self._bytes_max = bytes_max
        self._hours = hours
        self._under_way_max = under_way_max
        self._days_max = days_max
        self._now_ms = now_ms
        self._has_news = asyncio.Event()
        #: At the list of all jobs. An organisation may have some hundreds, and each is a file that is read.
        self._lists = InTurn(at_once=1, most=LISTS_MAX, of_all=1)
        #: By organisation that has jobs waiting, when its last turn was.
        self._turns: dict[str, int] = {}
        self._numbers = itertools.count(1)

    def understood(self, new: NewExport, admit: Admit) -> Wanted:
        """What is asked for, before anything is made of it. Raises `Wrong`, and what `admit` raises."""
        return exports.wanted(
            new.of, new.parameters, admit, self._now_ms(), days_max=self._days_max, rows_max=self._rows_max
        )

    async def add(self, new: NewExport, asked: Wanted, *, organisation_id: str, actor: str) -> Job:
        """A new job of what was understood. Raises `TooManyExports`, `NoRoomForExports` or `TooManyQuestions`."""
        now_ms = self._now_ms()
        whose, within = asked.question.customers, asked.range
        job = Job(
            id=secrets.token_hex(16),
            organisation_id=organisation_id,
            actor=actor,
            of=new.of,
            format=new.format,
            parameters=new.parameters | {"from": str(within.from_ms), "to": str(within.to_ms)},
            customers=whose.listed,
            customers_but=list(whose.but),
            created_ms=now_ms,
            expires_ms=now_ms + self._hours * _HOUR_MS,
            viewers=list(asked.viewers),
            is_of_viewers=asked.is_of_viewers,
        )
        # Those that come meanwhile find this one.
        async with self._lists.of(organisation_id):
            known = await asyncio.to_thread(self._files.all)
            own = [one for one in known if one.organisation_id == organisation_id]
            if len(own) >= EXPORTS_MAX or sum(not one.is_over for one in own) >= self._under_way_max:
                raise TooManyExports
            # However many organisations have theirs, some room is left to the next one.
            if _bytes(own) >= self._bytes_max - _bytes(known):
                raise NoRoomForExports
            await asyncio.to_thread(self._files.write, job)
        self._has_news.set()
        return job

    async def all(self, asker_id: str = "") -> list[Job]:
        """Every job that has not expired, the oldest first. Organisations that ask take turns. Raises `TooManyQuestions`."""
        async with self._lists.of(asker_id):
            known = await asyncio.to_thread(self._files.all)
        return [job for job in known if job.expires_ms > self._now_ms()]

    async def job(self, job_id: str) -> Job | None:
        """A job; None for an unknown id, or one that has expired."""
        found = await asyncio.to_thread(self._files.read, job_id)
        return found if found is not None and found.expires_ms > self._now_ms() else None

    def result(self, job: Job) -> Path:
        """The file of a job that is done."""
        return self._files.result(job)

    async def delete(self, job: Job) -> None:
        """Deletes a job, also one that is under way: its result is not kept."""
        await asyncio.to_thread(self._files.delete, job)

    async def keep(self) -> None:
        """Until cancelled. What a former process has left is begun again."""
        while True:
            self._has_news.clear()
            await self._look()
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._has_news.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        """Deletes what has expired, and takes up each job that waits once, at most."""
        tried: set[str] = set()
        for _ in await self._waiting():
            # Others come while one is written.
            waiting = [job for job in await self._waiting() if job.id not in tried]
            if not waiting:
                return
            job = self._next(waiting)
            tried.add(job.id)
            try:
                await self._take_up(job)
            except OSError as error:
                # Its state cannot be written, as on a full disk.
                log.warning("export_waits", export=job.id, kind=type(error).__name__, problem=str(error))

    async def _waiting(self) -> list[Job]:
        """Jobs that are not over, the oldest first. Deletes those that have expired."""
        found = []
        try:
            for job in await asyncio.to_thread(self._files.all):
                if job.expires_ms <= self._now_ms():
                    await self.delete(job)
                elif not job.is_over:
                    found.append(job)
        except OSError as error:
            log.warning("exports_unreadable", kind=type(error).__name__, problem=str(error))
        return found

    def _next(self, waiting: list[Job]) -> Job:
        """The oldest job of the organisation whose last turn is the longest ago."""
        self._turns = {job.organisation_id: self._turns.get(job.organisation_id, 0) for job in waiting}
        job = min(waiting, key=lambda one: self._turns[one.organisation_id])
        self._turns[job.organisation_id] = next(self._numbers)
        return job

    async def _take_up(self, job: Job) -> None:
        """Writes a job, or says why there is no file. Raises `OSError` where its state cannot be written."""
        with self._files.claimed(job) as is_ours:
            # Another process may have done it meanwhile.
            known = await asyncio.to_thread(self._files.read, job.id)
            if not is_ours or known is None or known.is_over:
                return
            if not await self._changed(known, state="running"):
                return
            try:
                async with asyncio.timeout(self._seconds_max):
                    rows = await self._written(known)
            except tuple(_FAILED) as error:
                problem = next(text for kind, text in _FAILED.items() if isinstance(error, kind))
                await self._failed(known, error, problem)
            except _PASSING as error:
                log.warning("export_waits", export=job.id, kind=type(error).__name__)
                # The next job has the room that half a file would take.
                await asyncio.to_thread(self._files.part(job).unlink, missing_ok=True)
                await self._changed(known, state="queued")
            except Exception as error:
                # It would come first after each restart, in every process: the others' jobs and questions do not end with it.
                log.exception("export_died", export=job.id)
                await self._failed(known, error, _UNKNOWN)
            else:
                await self._done(known, rows)

    async def _changed(self, job: Job, **changes: Any) -> bool:
        """See `ExportFiles.change`."""
        return await asyncio.to_thread(self._files.change, msgspec.structs.replace(job, **changes))

    async def _written(self, job: Job) -> int:
        """Writes a job's rows; how many. What it asks is read again: it was checked when it came."""
        wanted = exports.wanted(
            job.of,
            job.parameters,
            lambda _: job.whose,
            self._now_ms(),
            days_max=self._days_max,
            rows_max=self._rows_max,
        )
        path, zone = self._files.part(job), job.parameters.get("tz", "UTC")
        if wanted.search is not None:
            statement = search.statement(wanted.search)
            take = partial(
                write_batches,
                columns=wanted.search.columns,
                path=path,
                kind=job.format,
                rows_max=self._rows_max,
                zone=zone,
            )
            return await self._answering.pour(wanted.question, statement, take)
        columns, rows = await self._table(wanted)
        return await asyncio.to_thread(write_rows, columns, rows, path, job.format, zone=zone)

    async def _table(self, wanted: Wanted) -> tuple[list[str], list[list[Any]]]:
        if wanted.errors is not None:
            return export_tables.table_of_errors(await Lists(self._answering).errors(wanted.errors))
        if wanted.titles is not None:
            return export_tables.table_of_titles(wanted.question, await Lists(self._answering).titles(wanted.titles))
        return export_tables.table_of(wanted.question, await self._answering.answer(wanted.question))

    async def _done(self, job: Job, rows: int) -> None:
        size = (await asyncio.to_thread(self._files.part(job).stat)).st_size
        if await self._changed(job, state="done", rows=rows, bytes=size):
            log.info("export_done", export=job.id, rows=rows, bytes=size)

    async def _failed(self, job: Job, error: Exception, problem: str) -> None:
        await asyncio.to_thread(self._files.part(job).unlink, missing_ok=True)
        if await self._changed(job, state="failed", problem=problem):
            log.warning("export_failed", export=job.id, kind=type(error).__name__)


def _bytes(jobs: list[Job]) -> int:
    """Of the files that are done."""
    return sum(job.bytes or 0 for job in jobs)
