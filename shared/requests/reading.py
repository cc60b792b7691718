"""From a beacon's attributes to the request that it reports (docs/view.md). Names and units are those of each client."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from shared.client_values import measured, scalar, whole
from shared.requests.request import CANCELED, COMPLETED, COUNTED_MS_MAX, FAILED, REQUEST_MS_MAX, Request

_MUX_OUTCOMES: Final = {
    "requestcompleted": COMPLETED,
    "requestfailed": FAILED,
    "requestcanceled": CANCELED,
}
NATIVE_OUTCOMES: Final = {
    "completed": COMPLETED,
    "failed": FAILED,
    "canceled": CANCELED,
}


def of_mux(source_event: str, attrs: Mapping[str, Any]) -> Request:
    """The request that a mux beacon reports."""
    return Request(
        outcome=_MUX_OUTCOMES.get(source_event, COMPLETED),
        start_ms=measured(attrs.get("request_start")),
        first_byte_ms=measured(attrs.get("request_response_start")),
        end_ms=measured(attrs.get("request_response_end")),
        size_bytes=measured(attrs.get("request_bytes_loaded")),
        is_delta=True,
    )


def of_cmcd(attrs: Mapping[str, Any], at_ms: int) -> Request:
    """The request that an `rr` record reports; `at_ms` is the record's time."""
    status = whole(scalar(attrs["rc"])) if "rc" in attrs else 200
    first_ms, last_ms = measured(scalar(attrs.get("ttfb"))), measured(scalar(attrs.get("ttlb")))
    if first_ms is not None and first_ms > (REQUEST_MS_MAX if last_ms is None else last_ms):
        # dash.js 5.2 sends a time since 1970 if the browser has measured none.
        first_ms = None
    return Request(
        outcome=COMPLETED if 0 < status < 400 else FAILED,
        start_ms=at_ms,
        first_byte_ms=None if first_ms is None else at_ms + first_ms,
        end_ms=None if last_ms is None else at_ms + last_ms,
    )


def of_native(attrs: Mapping[str, Any]) -> Request:
    """The request that a native beacon reports."""
    return Request(
        outcome=NATIVE_OUTCOMES.get(str(attrs.get("request_outcome")), COMPLETED),
        start_ms=0,
        first_byte_ms=measured(attrs.get("request_ttfb_ms")),
        end_ms=measured(attrs.get("request_ms")),
        size_bytes=measured(attrs.get("request_bytes")),
    )


def filled(request: Request, last: Sequence[int | None]) -> list[int | None]:
    """Start, first byte, end and bytes of a request. In a delta the others are those of the request before, `last`."""
    if not request.is_delta or not last:
        return [request.start_ms, request.first_byte_ms, request.end_ms, request.size_bytes]
    start_ms, first_byte_ms, end_ms, size_bytes = last
    return [
        start_ms if request.start_ms is None else request.start_ms,
        first_byte_ms if request.first_byte_ms is None else request.first_byte_ms,
        end_ms if request.end_ms is None else request.end_ms,
        size_bytes if request.size_bytes is None else request.size_bytes,
    ]


def took_ms(start_ms: int, end_ms: int) -> int:
    """The time between two moments of a request, as it counts."""
    return min(max(0, end_ms - start_ms), COUNTED_MS_MAX)
