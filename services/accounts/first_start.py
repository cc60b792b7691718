"""What a service that knows people does beside its requests: brings the schema, offers the first owner a link, cleans up."""

import asyncio
from collections.abc import Callable
from typing import Final

import psycopg
import structlog

from services.accounts.service import Accounts
from services.accounts.store.schema import migrate
from services.rim.database.migrations import DatabaseNewer
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused

log = structlog.get_logger(__name__)

RETRY_SECONDS: Final = 2.0
CLEAN_SECONDS: Final = 600.0


async def keep(accounts: Accounts, announce: Callable[[str], None]) -> None:
    """Until cancelled. `announce` is given the text of the first owner's link, once, while no account exists."""
    await _schema(accounts.dsn)
    while True:
        try:
            link = await accounts.new_owner_link()
            break
        except (PostgresAway, NotPublished, QueryRefused):
            await asyncio.sleep(RETRY_SECONDS)
    if link is not None:
        announce(link.text)
    while True:
        await asyncio.sleep(CLEAN_SECONDS)
        try:
            await accounts.clean()
        except (PostgresAway, NotPublished, QueryRefused) as error:
            log.warning("accounts_not_cleaned", kind=type(error).__name__)


async def _schema(dsn: str) -> None:
    problem = ""
    while True:
        try:
            await asyncio.to_thread(migrate, dsn)
            return
        except (psycopg.Error, DatabaseNewer) as error:
            # The driver's texts name hosts and users.
            sqlstate = (getattr(error, "sqlstate", None) or "") if isinstance(error, psycopg.Error) else str(error)
            if (found := f"{type(error).__name__} {sqlstate}".strip()) != problem:
                problem = found
                log.error("accounts_schema_missing", problem=problem)
        await asyncio.sleep(RETRY_SECONDS)
