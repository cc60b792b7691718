"""Finds the country and the network of an address, in databases of MaxMind's format."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import maxminddb

from services.collector.intake.sender.client import NOWHERE, Place

PLACES_REMEMBERED_MAX: Final = 65_536


class Places:
    """Addresses looked up in databases of MaxMind's format. Raises `OSError` or `ValueError` for a file that is not a database."""

    def __init__(self, files: Sequence[Path]) -> None:
        try:
            self._readers = [maxminddb.open_database(file, maxminddb.MODE_MEMORY) for file in files]
        except maxminddb.InvalidDatabaseError as error:
            raise ValueError(f"no database of places: {error}") from error
        self.find = lru_cache(PLACES_REMEMBERED_MAX)(self._find) if files else _nowhere

    def _find(self, address: str | None) -> Place:
        country: str | None = None
        asn: int | None = None
        for reader in self._readers:
            try:
                found = reader.get(address) if address else None
            except (ValueError, maxminddb.InvalidDatabaseError):
                continue
            if isinstance(found, Mapping):
                code = _within(found, "country", "iso_code")
                number = _within(found, "autonomous_system_number")
                country = code if isinstance(code, str) else country
                asn = number if isinstance(number, int) else asn
        return Place(country, asn)


def _nowhere(_address: str | None) -> Place:
    return NOWHERE


def _within(found: Any, *names: str) -> Any:
    for name in names:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return found
