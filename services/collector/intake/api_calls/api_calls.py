"""The intake of API calls: one call or a batch as JSON. Only the shape of a call is kept: no value is stored or logged.

`NativeCall` and `Batch` define the format: bodies are decoded with them, and the JSON Schema is generated from them.
"""

from functools import cache
from itertools import islice
from typing import Annotated, Any, Final, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec

from services.collector.intake.api_calls.shapes import Places, names_of, shape_of
from services.collector.intake.body import unpacked
from services.collector.intake.json_format import check_items, decoded, schema_of
from services.collector.intake.post import (
    InvalidInput,
    ParsedBody,
    Post,
    Rejected,
    Rules,
    check_invalid,
    checked_customer,
    claimed_customer,
)
from services.collector.intake.values import WHOLE_MAX
from shared.api.formats import path_of
from shared.api.shapes import FIELDS_MAX
from shared.http.patterns import whole
from shared.schemas.apis.call import HOST_CHARS_MAX, METHOD_CHARS_MAX, SCHEMA_VERSION, ApiCall
from shared.schemas.apis.shape import Shape
from shared.schemas.span import DEFAULT_CUSTOMER

T = TypeVar("T")

PATH_CHARS_MAX: Final = 8_000
#: Escapes (`%41`) of a query that take as long to read as one place of a shape.
_ESCAPES_A_PLACE: Final = 12
_REDACTED: Final = b"(not kept: it may hold values)"
_Headers = Annotated[
    dict[str, Any], msgspec.Meta(description="By name. Their values are not kept, and need not be sent.")
]
_Body = Annotated[
    Any, msgspec.Meta(description="The payload as JSON; left out where there was none or it was no JSON.")
]


class Side(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What went to the server, or what came back."""

    headers: _Headers = {}
    body: _Body = msgspec.UNSET


class NativeCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of an API."""

    method: Annotated[str, msgspec.Meta(pattern=whole(f"[A-Za-z]{{1,{METHOD_CHARS_MAX}}}"))]
    host: Annotated[
        str,
        msgspec.Meta(
            pattern=whole(r"[A-Za-z0-9._:\[\]-]+"),
            max_length=HOST_CHARS_MAX,
            description="With the port if it is unusual.",
        ),
    ]
    path: Annotated[str, msgspec.Meta(pattern="^/", max_length=PATH_CHARS_MAX, description="With the query, if any.")]
    status: Annotated[int, msgspec.Meta(ge=100, le=599)]
    time_ms: Annotated[int, msgspec.Meta(ge=0, le=WHOLE_MAX, description="When it was called, ms since 1970.")]
    duration_us: Annotated[int, msgspec.Meta(ge=0, le=WHOLE_MAX)] | None = None
    request: Side = Side()
    response: Side = Side()


class Batch(msgspec.Struct, Generic[T], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls of one customer, of one API or several."""

    calls: list[T]


class _Either(msgspec.Struct):
    calls: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_either: Final = msgspec.json.Decoder(_Either)
_batch: Final = msgspec.json.Decoder(Batch[msgspec.Raw])
_call: Final = msgspec.json.Decoder(NativeCall)


@cache
def json_schema() -> bytes:
    """The JSON Schema (2020-12) of a body."""
    return schema_of("Playhead API calls", NativeCall, Batch[NativeCall])


def parse_calls(post: Post, rules: Rules) -> ParsedBody:
    """The POST's calls; each invalid item is reported with its index. A rejected item is kept without its bytes."""
    key = post.key or DEFAULT_CUSTOMER
    customer_id = claimed_customer(key, rules)
    try:
        customer_id = checked_customer(key, post, rules).id
        body = unpacked(post, rules)
        check_items(body, rules)
        raws = _opened(body)
        if len(raws) > rules.batch_calls_max:
            raise InvalidInput("too_large", f"{len(raws)} calls in one body; {rules.batch_calls_max} are the most")
    except InvalidInput as invalid:
        return ParsedBody([], [_rejected(invalid, customer_id, None)])
    accepted: list[ApiCall] = []
    rejected: list[Rejected] = []
    places = Places()
    for place, raw in enumerate(raws):
        post.pause()
        try:
            accepted.append(_canonical(decoded(_call, raw, "call"), post, rules, customer_id, places))
        except InvalidInput as invalid:
            rejected.append(_rejected(invalid, customer_id, place))
            check_invalid(len(rejected), post)
    return ParsedBody(accepted, rejected)


def _opened(body: bytes) -> list[msgspec.Raw]:
    if decoded(_either, body, "body").calls is msgspec.UNSET:
        return [msgspec.Raw(body)]
    return decoded(_batch, body, "body").calls


def _canonical(call: NativeCall, post: Post, rules: Rules, customer_id: str, places: Places) -> ApiCall:
    path = path_of(call.path)
    if path is None:
        raise InvalidInput("invalid", "the path has too many parts")
    return ApiCall(
        schema_version=SCHEMA_VERSION,
        customer_id=customer_id,
        host=call.host.lower(),
        method=call.method.upper(),
        path=path,
        status=call.status,
        at_ms=call.time_ms,
        duration_us=call.duration_us,
        source="native",
        shape=_shape(call, places),
        collector_id=rules.collector_id,
        batch_id=post.batch_id,
    )


def _shape(call: NativeCall, places: Places) -> Shape:
    at_ms = call.time_ms
    places.begin_call()
    return _object(
        at_ms,
        query=shape_of(_query(call.path, places), at_ms, places),
        request=_side(call.request, at_ms, places),
        response=_object(at_ms, **{str(call.status): _side(call.response, at_ms, places)}),
    )


def _query(path: str, places: Places) -> dict[str, str]:
    """The query's parameters: as many as an object's fields, the others are not looked at. Raises `InvalidInput`."""
    written = path.partition("?")[2]
    # Parameters of one name are one place in the end, and cost as much as any; so do escapes, by the dozen.
    places.add(min(written.count("&"), FIELDS_MAX) + written.count("%") // _ESCAPES_A_PLACE)
    parameters = "&".join(written.split("&", FIELDS_MAX)[:FIELDS_MAX])
    return dict(parse_qsl(parameters, keep_blank_values=True))


def _side(side: Side, at_ms: int, places: Places) -> Shape:
    names: dict[str, Any] = {name.lower(): None for name in islice(side.headers, FIELDS_MAX)}
    parts = {"headers": names_of(names, at_ms, places)}
    if side.body is not msgspec.UNSET:
        parts["body"] = shape_of(side.body, at_ms, places)
    return _object(at_ms, **parts)


def _object(at_ms: int, **fields: Shape) -> Shape:
    return Shape(1, at_ms, at_ms, ["object"], fields=fields)


def _rejected(invalid: InvalidInput, customer_id: str | None, place: int | None) -> Rejected:
    return Rejected(reason=invalid.reason, detail=invalid.detail, value=_REDACTED, customer_id=customer_id, place=place)
