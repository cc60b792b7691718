"""One call of an API, without its values: the endpoint, and the shapes of request and response. The value of topic `api_calls`."""

from typing import Final, Literal

import msgspec

from shared.schemas.apis.shape import Shape

SCHEMA_VERSION: Final = 1

HOST_CHARS_MAX: Final = 255
METHOD_CHARS_MAX: Final = 16
#: Of HTTP.
STATUS_MIN: Final = 100
STATUS_MAX: Final = 599


class ApiCall(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One call. `path` has its parts as `shared.api.formats.path_of` returns them: words unchanged, data as its format."""

    schema_version: int
    customer_id: str
    #: Lower case, with the port where it is not the usual one.
    host: str
    method: str
    path: list[str]
    status: int
    #: When it was called, ms since 1970; and how long it took, where that is known.
    at_ms: int
    duration_us: int | None = None
    #: The source: the native format, or a server span.
    source: Literal["native", "span"]
    #: An object of `query`, `request` and `response`, these of `headers` and `body`; None where nothing is known of them.
    shape: Shape | None = None
    collector_id: str | None = None
    batch_id: str | None = None
