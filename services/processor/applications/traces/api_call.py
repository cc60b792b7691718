"""Turns an HTTP server span into a call of an API: what was called and how it ended. Pure.

Names of attributes are those of OpenTelemetry's conventions for HTTP, the stable ones and those before 1.23:
https://opentelemetry.io/docs/specs/semconv/http/http-spans.
"""

from typing import Any
from urllib.parse import urlsplit

from shared.api.formats import path_of
from shared.schemas.apis.call import (
    HOST_CHARS_MAX,
    METHOD_CHARS_MAX,
    SCHEMA_VERSION,
    STATUS_MAX,
    STATUS_MIN,
    ApiCall,
)
from shared.schemas.span import Span

_USUAL_PORTS = frozenset({80, 443})


def to_api_call(span: Span) -> ApiCall | None:
    """The call that the span is of; None for a span of anything else, or one without a path."""
    if span.kind != "server":
        return None
    method = _text(span, "http.request.method", "http.method").upper()
    status = _whole(span, "http.response.status_code", "http.status_code")
    host = _host(span)
    path = path_of(_path(span))
    if not method.isalpha() or len(method) > METHOD_CHARS_MAX or path is None:
        return None
    if status is None or not STATUS_MIN <= status <= STATUS_MAX or not host.isprintable():
        return None
    return ApiCall(
        schema_version=SCHEMA_VERSION,
        customer_id=span.customer_id,
        host=host.lower()[:HOST_CHARS_MAX],
        method=method,
        path=path,
        status=status,
        at_ms=span.start_us // 1000,
        duration_us=span.duration_us,
        source="span",
        collector_id=span.collector_id,
        batch_id=span.batch_id,
    )


def _host(span: Span) -> str:
    """The host as clients name it; the service's name if the span has no host."""
    host = _text(span, "server.address", "http.host", "net.host.name")
    port = _whole(span, "server.port", "net.host.port")
    if host and port is not None and port not in _USUAL_PORTS and ":" not in host:
        return f"{host}:{port}"
    return host or span.service


def _path(span: Span) -> str:
    """The route where it is known, since it marks which parts are data; else the path."""
    route = _text(span, "http.route")
    if route:
        return route if route.startswith("/") else f"/{route}"
    return _text(span, "url.path", "http.target") or _path_of_url(_text(span, "url.full", "http.url"))


def _path_of_url(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        # The client's text is not a URL, for example `http://[`: the span is still a span.
        return ""


def _text(span: Span, *names: str) -> str:
    return next((value for name in names if isinstance(value := span.attrs.get(name), str)), "")


def _whole(span: Span, *names: str) -> int | None:
    values: list[Any] = [span.attrs.get(name) for name in names]
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)
