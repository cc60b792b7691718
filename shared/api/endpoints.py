"""Endpoints: finds the endpoint of a call, which is a method and a path template (`GET /users/{}`). Pure.

The same calls in the same order always give the same endpoints.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from shared.api.paths import Paths, bytes_of, generalise, known_template, prune, template_of
from shared.partitioning import api_key
from shared.schemas.apis.call import HOST_CHARS_MAX, ApiCall
from shared.schemas.beacon import CUSTOMER_ID
from shared.schemas.span import DEFAULT_CUSTOMER

#: What an API answers with where it has no endpoint.
_NO_ENDPOINT: Final = frozenset({404, 405})
#: The tally of calls to what is no endpoint, of hosts that have none: such a host is no API, and nothing is kept of it.
CALLS_WITHOUT_API: Final = "calls_without_api"

#: Of the paths and the names of endpoints of one API, bytes. A call of one more endpoint than there is room for is dropped.
API_BYTES_MAX: Final = 400_000
#: What a place costs beside its texts, bytes.
_PLACE_BYTES: Final = 32


class Api(Protocol):
    """What is kept of one API."""

    paths: Paths
    #: Names of endpoints, sorted.
    endpoints: list[str]
    #: Calls of what is no endpoint (404, 405), and of endpoints beyond the limit.
    unmatched: int
    dropped: int


@dataclass(frozen=True)
class Placed:
    """Where a call belongs."""

    endpoint: str
    #: The name that it was found new under; None when it was known.
    new: str | None = None
    #: Endpoints that turned out to be one with others: what each is called from now on.
    moved: Mapping[str, str] = field(default_factory=dict)
    #: Whether the API's row is another now.
    is_changed: bool = False


class NotAnApi(ValueError):
    """The requested name cannot be an API's name; the text says why."""


def asked_key(parts: Mapping[str, str]) -> bytes:
    """The key of the API that `host` and perhaps `customer` in a lookup's address name; raises `NotAnApi`."""
    customer_id, host = parts.get("customer", DEFAULT_CUSTOMER), parts["host"].lower()
    if not CUSTOMER_ID.fullmatch(customer_id):
        raise NotAnApi(f"a customer id matches {CUSTOMER_ID.pattern}")
    if not 0 < len(host) <= HOST_CHARS_MAX:
        raise NotAnApi(f"a host has 1 to {HOST_CHARS_MAX} characters")
    return api_key(customer_id, host)


def api_of(row_key: bytes) -> bytes:
    """The key of the API of an endpoint's row: the bytes before the first zero byte."""
    return row_key.partition(b"\x00")[0]


def place(api: Api, call: ApiCall, *, endpoints_max: int) -> Placed | None:
    """The call's endpoint, added to `api` if it is new; None for a call without an endpoint, which is counted."""
    name = f"{call.method} {known_template(api.paths, call.path)}"
    if name not in api.endpoints:
        if call.status in _NO_ENDPOINT:
            api.unmatched += 1
            return None
        if len(api.endpoints) >= endpoints_max or _bytes_with(api, name) > API_BYTES_MAX:
            api.dropped += 1
            return None
    template, is_changed = template_of(api.paths, call.path)
    name = f"{call.method} {template}"
    if name in api.endpoints:
        return Placed(name, is_changed=is_changed)
    api.endpoints = [*api.endpoints, name]
    moved = generalise(api.paths, sorted(api.endpoints))
    api.endpoints = sorted({moved.get(one, one) for one in api.endpoints})
    return Placed(moved.get(name, name), new=name, moved=moved, is_changed=True)


def _bytes_with(api: Api, name: str) -> int:
    """About the bytes of an API with one endpoint more. Each part of its path may be stored with all parts before it."""
    template = name.partition(" ")[2]
    befores = [template[:at] for at, character in enumerate(template) if character == "/"]
    return (
        bytes_of(api.paths)
        + sum(_stored_bytes(one) for one in api.endpoints)
        + sum(_stored_bytes(before) for before in befores)
        # Its words, its name, and its name once more while words are taken for data.
        + 3 * _stored_bytes(name)
        + _PLACE_BYTES * len(befores)
    )


def _stored_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass")) + 5


def remove(api: Api, name: str) -> None:
    """Forgets an endpoint, and what only its path had."""
    api.endpoints = [one for one in api.endpoints if one != name]
    prune(api.paths, api.endpoints)
