"""Hashes of passwords: argon2id with the library's own parameters (RFC 9106, low memory: 64 MiB, 3 passes).

One takes some 50 ms of four cores and 64 MiB, so few are made at a time, on threads.
"""

import asyncio
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

#: 128 MiB at most.
HASHES_AT_ONCE_MAX: Final = 2


class Passwords:
    """Makes and checks hashes. Belongs to one event loop."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turns = asyncio.Semaphore(HASHES_AT_ONCE_MAX)
        #: What an account that does not exist is checked against, so that it takes as long as one that does.
        self._nobodys: str | None = None

    async def hash(self, password: str) -> str:
        """The hash to store, with its parameters and salt."""
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def is_right(self, stored: str | None, password: str) -> bool:
        """Whether it is the password of this hash; False, after as much work, where there is no hash."""
        if stored is None:
            self._nobodys = self._nobodys or await self.hash("nobody's password")
        async with self._turns:
            found = await asyncio.to_thread(self._verified, stored or self._nobodys or "", password)
        return found and stored is not None

    def is_outdated(self, stored: str) -> bool:
        """Whether it was made with less work than one made now."""
        return self._hasher.check_needs_rehash(stored)

    def _verified(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False
