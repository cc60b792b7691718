"""The dashboard's commands about accounts, and how it announces the first owner's link."""

import sys
from collections.abc import Sequence
from typing import Final

import psycopg

from services.accounts.commands import login_link, owner_link
from services.accounts.store import schema
from services.dashboard.settings import DashboardSettings
from services.rim.database.migrations import DatabaseNewer
from services.rim.database.pool import PostgresAway, QueryRefused

#: Exit codes: wrong settings or command; something that is needed is not there.
EXIT_SETTINGS: Final = 2
EXIT_BOOT: Final = 3


def announce(settings: DashboardSettings, link: str) -> None:
    """Prints the link of the first owner.

    It is no line of the log, which is kept and sent to others: the link makes its bearer the owner.
    """
    sys.stderr.write(
        f"dashboard: nobody has an account yet. The first owner begins here: {_following(settings, link)}\n"
    )
    sys.stderr.flush()


def _following(settings: DashboardSettings, link: str) -> str:
    """What comes behind # is not sent, so no proxy's log has it."""
    return f"{settings.page_url}/login#{link}"


def run(settings: DashboardSettings, arguments: Sequence[str]) -> int:
    """Carries out a command; returns the exit code of the process."""
    try:
        match arguments:
            case ["migrate-accounts"]:
                schema.migrate(settings.accounts_address)
                return 0
            case ["owner-link"]:
                link = owner_link(settings.accounts_address)
                why = "somebody has an account already: an owner invites others; login-link ADDRESS lets an owner in"
            case ["login-link", address]:
                link, why = login_link(settings.accounts_address, address), f"{address} has no account"
            case ["begin-again", address]:
                link = login_link(settings.accounts_address, address, begins_again=True)
                why = f"{address} has no account, or is in no organisation: an invitation lets the person in"
            case _:
                sys.stderr.write(
                    "dashboard: the commands are owner-link, login-link ADDRESS, begin-again ADDRESS and migrate-accounts\n"
                )
                return EXIT_SETTINGS
    except (psycopg.Error, DatabaseNewer, PostgresAway, QueryRefused) as error:
        cause = str(error) if isinstance(error, DatabaseNewer) else type(error).__name__
        sys.stderr.write(f"dashboard: the accounts cannot be reached: {cause}\n")
        return EXIT_BOOT
    sys.stdout.write(f"{_following(settings, link) if link else why}\n")
    return 0 if link else 1
