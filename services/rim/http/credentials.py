"""Credentials of services: the name of each caller, the hash of its token, its scopes, and its customers.

`python -m services.rim.http.credentials NAME SCOPE[,SCOPE] [CUSTOMER[,CUSTOMER]]` makes one: it prints the token, which the caller
is given, and the entry, which the callee is given.
"""

import hashlib
import re
import secrets
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

#: `lookups` reads rows of customers, `objects` what they name in the object store, `read` and `write` use the application's own
#: API, `partitions` sees which slot works which, `operators` sees and releases quarantined keys, `slots` passes requests on.
Scope = Literal["lookups", "objects", "read", "write", "partitions", "operators", "slots"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
#: What an entry of single customers may do: all else is of the whole installation.
OF_CUSTOMERS: Final[frozenset[Scope]] = frozenset({"lookups", "objects"})
ENTRIES_MAX: Final = 256
_ENTRY: Final = re.compile(r"([a-z0-9][a-z0-9_.-]{0,63})=([a-z,]+)=([0-9a-f]{64})(?:=([^\s=,]+(?:,[^\s=,]+)*))?")


@dataclass(frozen=True)
class Credential:
    """Who holds a token, and what it is for."""

    name: str
    scopes: frozenset[Scope]
    #: SHA-256 of the token: it has at least 128 random bits, so a slow hash would add nothing.
    digest: bytes
    #: The only ones that it reads; None: all.
    customers: frozenset[str] | None = None

    def reads(self, customers: Iterable[str]) -> bool:
        """Whether these are all customers of its own."""
        return self.customers is None or self.customers.issuperset(customers)


class Credentials:
    """The callers that a service knows. Several entries may have one name, while a token is replaced."""

    def __init__(self, known: Iterable[Credential]) -> None:
        self._by_digest = {one.digest: one for one in known}

    def holder(self, authorization: str) -> Credential | None:
        """Whose bearer token an `Authorization` header holds; None for any other scheme, Basic too."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        # By its hash: how long the search takes says nothing of any token.
        return self._by_digest.get(digest_of(given))


def digest_of(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def parse(text: str) -> list[Credential]:
    """The entries of `name=scope,scope=SHA-256 of the token[=customer,customer]`, separated by spaces or lines.

    Raises `ValueError`, which names entries by their place.
    """
    found = []
    for place, entry in enumerate(text.split(), 1):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"entry {place} is not name=scope,scope=sha256[=customer,customer]")
        scopes = frozenset(match[2].split(","))
        if unknown := scopes - set(SCOPES):
            raise ValueError(f"entry {place}: {', '.join(sorted(unknown))} is no scope of {', '.join(SCOPES)}")
        customers = None if match[4] is None else frozenset(match[4].split(","))
        if customers is not None and not scopes <= OF_CUSTOMERS:
            raise ValueError(f"entry {place}: of single customers there are only {', '.join(sorted(OF_CUSTOMERS))}")
        found.append(Credential(match[1], scopes, bytes.fromhex(match[3]), customers))
    if len(found) > ENTRIES_MAX:
        raise ValueError(f"at most {ENTRIES_MAX} entries")
    return found


def entry(name: str, scopes: Iterable[Scope], token: str, customers: Iterable[str] = ()) -> str:
    """The entry of a caller with this token, as `parse` reads it."""
    text = f"{name}={','.join(sorted(scopes))}={digest_of(token).hex()}"
    return f"{text}={','.join(sorted(customers))}" if customers else text


def main(arguments: Sequence[str]) -> int:
    """The command."""
    if len(arguments) not in {2, 3}:
        sys.stderr.write(f"{__doc__}\nScopes: {', '.join(SCOPES)}\n")
        return 2
    name, scopes, *customers = arguments
    token = secrets.token_urlsafe(32)
    made = entry(name, scopes.split(","), token, customers[0].split(",") if customers else ())  # type: ignore[arg-type]
    try:
        parse(made)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{token}\n{made}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
