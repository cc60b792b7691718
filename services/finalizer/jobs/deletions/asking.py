"""The command that requests a deletion, and its output. It does not wait for exports: the service query has them."""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

import psycopg

from services.accounts.core.deletions import SESSIONS_MAX, VIEWER_CHARS_MAX, Step
from services.accounts.store import schema
from services.accounts.store.audit import SYSTEM
from services.accounts.store.customers import deletions
from services.accounts.store.customers.deletions import Deletion, StepRow, TooManyDeletions
from services.accounts.store.tenants.organisations import CustomerUnknown
from services.finalizer.failures import JobFailed
from services.finalizer.serving.deletion_requests import OPTIONS
from services.finalizer.settings import FinalizerSettings
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.recording import SESSION_ID

T = TypeVar("T")

_LOOK_SECONDS: Final = 2.0


class DeletionFailed(JobFailed):
    """The request cannot be carried out; the text says why."""


def add_to(jobs: Any, run: Callable[..., None]) -> None:
    """Adds the command."""
    gone = jobs.add_parser("forget", help="delete a viewer's data, or a whole customer's, everywhere, and report")
    gone.set_defaults(run=run)
    gone.add_argument("--customer", required=True, type=_matching(CUSTOMER_ID, "customer"))
    whose = gone.add_mutually_exclusive_group(required=True)
    whose.add_argument("--viewer", type=_viewer, help="viewer_id or viewer_user_id")
    whose.add_argument("--whole-customer", action="store_true")
    gone.add_argument(
        "--session",
        action="append",
        default=[],
        type=_matching(SESSION_ID, "session"),
        help=f"a recorded session of the viewer, up to {SESSIONS_MAX} of them; those of the viewer's views need not be named",
    )


def ask(settings: FinalizerSettings, given: argparse.Namespace) -> str:
    """Makes the request, or finds the same one under way; its id. Raises `DeletionFailed` where it could not be made."""

    async def ask(connection: psycopg.AsyncConnection) -> str:
        owner = await deletions.owner_of(connection, given.customer)
        new = deletions.wanted(given.customer, given.viewer, given.session, organisation_id=owner, asked_by=SYSTEM.name)
        return (await deletions.ask(connection, new, replace(SYSTEM, organisation_id=owner))).id

    try:
        schema.migrate(settings.accounts_database)
        return _run(settings.accounts_database, ask)
    except CustomerUnknown:
        raise DeletionFailed("the customer moves to another organisation just now: ask again") from None
    except TooManyDeletions:
        raise DeletionFailed("too many requests are under way") from None
    except psycopg.Error as error:
        # By kind: the driver's texts name hosts and users.
        raise DeletionFailed(f"not requested: {type(error).__name__} ({error.sqlstate or 'no connection'})") from None


def _run(dsn: str, do: Callable[[psycopg.AsyncConnection], Awaitable[T]]) -> T:
    """In one transaction."""

    async def run() -> T:
        async with await psycopg.AsyncConnection.connect(dsn, **OPTIONS) as connection:
            return await do(connection)

    return asyncio.run(run())


def _read(dsn: str, request_id: str) -> tuple[Deletion, list[StepRow]]:
    found = _run(dsn, lambda connection: deletions.one(connection, request_id))
    if found is None:
        raise DeletionFailed("the request is gone")
    return found


class Asked:
    """A request, looked at every so often."""

    def __init__(self, settings: FinalizerSettings, request_id: str) -> None:
        self._dsn = settings.accounts_database
        self._id = request_id
        self._next_look = 0.0

    def is_over(self) -> bool:
        """Whether all but exports is done. Raises `DeletionFailed`."""
        if time.monotonic() < self._next_look:
            return False
        self._next_look = time.monotonic() + _LOOK_SECONDS
        row, steps = _read(self._dsn, self._id)
        if row.state == "failed":
            raise DeletionFailed(row.problem)
        return all(one.state == "done" for one in steps if one.step != Step.EXPORTS)

    def lines(self) -> Iterator[str]:
        """For people; holds no viewer's id."""
        return lines(*_read(self._dsn, self._id))


def lines(row: Deletion, steps: list[StepRow]) -> Iterator[str]:
    """The request as text."""
    yield f"deletion {row.id}: {row.state}"
    for one in steps:
        yield f"{one.step:20}{one.state}"
        for name, value in one.found.items():
            is_time = one.step == Step.TOPICS
            yield f"  {name:30}" + (f"gone by {_time(value)}" if is_time else f"{value:>12,}")


def _time(ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(ms // 1_000))


def _viewer(text: str) -> str:
    if not 0 < len(text) <= VIEWER_CHARS_MAX or "\0" in text:
        raise argparse.ArgumentTypeError(f"a viewer's id has 1 to {VIEWER_CHARS_MAX} characters")
    return text


def _matching(pattern: Any, what: str) -> Callable[[str], str]:
    def checked(text: str) -> str:
        if not pattern.fullmatch(text):
            raise argparse.ArgumentTypeError(f"{text!r} is no {what}: {pattern.pattern}")
        return text

    return checked
