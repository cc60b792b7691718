"""The customers file, read again when it changes. If the new file is invalid, the last valid one stays in force."""

import asyncio
from pathlib import Path
from typing import Final, Protocol

import structlog

from services.collector.intake.post import Rules
from services.collector.intake.sender.customers import Customers, CustomersWrong, parsed_customers
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_CUSTOMERS_RELOADS

log = structlog.get_logger(__name__)

FILE_BYTES_MAX: Final = 64 * 1024 * 1024


class CustomersFile:
    """The customers of a TOML or JSON file (by its suffix). Raises `CustomersWrong` or `OSError` if it has no valid customers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._stamp()
        self.customers: Customers = self._parsed(self._data())
        log.info("customers_loaded", file=str(path), keys=len(self.customers))

    def reload_when_changed(self) -> None:
        """Reads the file again if it has changed; a read error is logged and counted."""
        counter = metrics.counter(COLLECTOR_CUSTOMERS_RELOADS)
        try:
            stamp = self._stamp()
            if stamp == self._seen:
                return
            data = self._data()
            # Only now: a file that could not be read is tried again; an invalid file is reported once.
            self._seen = stamp
            self.customers = self._parsed(data)
        except (OSError, CustomersWrong) as error:
            counter.labels("failed").inc()
            log.error("customers_not_reloaded", file=str(self._path), problem=str(error), keys=len(self.customers))
            return
        counter.labels("ok").inc()
        log.info("customers_loaded", file=str(self._path), keys=len(self.customers))

    async def watch(self, seconds: float) -> None:
        """Checks the file at this interval, for ever, on a thread that may wait for the disk."""
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.reload_when_changed)

    def _stamp(self) -> tuple[int, int, int]:
        # A mounted volume replaces files by renaming: the inode shows a change that an equal time and size would hide.
        stat = self._path.stat()
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _data(self) -> bytes:
        with self._path.open("rb") as file:
            return file.read(FILE_BYTES_MAX + 1)

    def _parsed(self, data: bytes) -> Customers:
        if len(data) > FILE_BYTES_MAX:
            raise CustomersWrong(f"longer than {FILE_BYTES_MAX} bytes")
        return parsed_customers(data, toml=self._path.suffix == ".toml")


class CustomersSource(Protocol):
    """A file or table of customers that changes while the collector runs."""

    customers: Customers

    async def watch(self, seconds: float) -> None:
        """Checks it at this interval, for ever; `customers` is the last valid content."""


class RulesNow:
    """The rules in force: those given, with the customers the source holds now."""

    def __init__(self, rules: Rules, source: CustomersSource | None) -> None:
        self._rules = rules
        self._source = source

    def __call__(self) -> Rules:
        """The rules for one request."""
        if self._source is not None and self._source.customers is not self._rules.customers:
            self._rules = self._rules.model_copy(update={"customers": self._source.customers})
        return self._rules
