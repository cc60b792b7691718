"""The account of a load test in several processes: joins the accounts of all processes into one truth. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypedDict

from loadtest.expected.ledger import Ledger, Totals


class Account(TypedDict):
    """What one process reports: totals of all its run, and the rows of views that were settled since its last report."""

    totals: dict[str, int]
    rows: list[dict[str, Any]]


class AccountReader:
    """Returns a ledger's account, each row once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._read_rows = 0

    def read(self) -> Account:
        """What is new since the last time."""
        rows = self._ledger.rows[self._read_rows :]
        self._read_rows += len(rows)
        return {"totals": asdict(self._ledger.totals), "rows": rows}


class Accounts:
    """Those of all processes."""

    def __init__(self) -> None:
        self._totals: dict[str, Mapping[str, int]] = {}
        self.rows: list[dict[str, Any]] = []

    def take(self, process: str, account: Account) -> None:
        """A process has sent its account."""
        self._totals[process] = account["totals"]
        self.rows += account["rows"]

    @property
    def totals(self) -> Totals:
        """The sums over all processes."""
        return Totals(
            **{each.name: sum(totals[each.name] for totals in self._totals.values()) for each in fields(Totals)}
        )
