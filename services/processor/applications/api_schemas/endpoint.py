"""One endpoint of an API: the shape of its calls, and the differences of a call from the published shape. Pure."""

from collections.abc import Iterator
from typing import Final

import msgspec

from shared.api.shapes import counted, discreet, merged, size_of, teaches, without_words
from shared.schemas.apis.call import ApiCall
from shared.schemas.apis.change import ChangeKind
from shared.schemas.apis.shape import Shape

#: Calls in a row without a field that all had: then it has vanished.
VANISHED_CALLS: Final = 10
#: Places of one endpoint's payloads that are learned, and their bytes. Beyond these bytes no text is an enumeration any more;
#: a call that would still pass them is counted, and adds nothing.
PLACES_MAX: Final = 2_000
SHAPE_BYTES_MAX: Final = 300_000
#: Bytes of the names in the published shape and in later findings. Beyond this limit nothing new is stored or reported.
KNOWN_BYTES_MAX: Final = 200_000
#: What a place that is known costs beside its name, bytes.
_KNOWN_PLACE_BYTES: Final = 48
#: Different statuses that are counted apart.
STATUSES_MAX: Final = 500
#: Headers vary with proxies and clients: they are learned, and not reported as drift.
_NO_DRIFT: Final = frozenset({"/request/headers"})
#: Names of which one call need not have all: a request has no body, a response one status.
_NEVER_REQUIRED: Final = frozenset({"", "/response"})


class Known(msgspec.Struct, array_like=True):
    """The published shape of one place, and the changes reported since."""

    types: list[str]
    is_required: bool = False
    #: Calls in a row that lacked it.
    missed: int = 0
    fields: dict[str, "Known"] = {}
    items: "Known | None" = None
    values: "Known | None" = None


class Endpoint(msgspec.Struct, array_like=True):
    """One endpoint. Clock times are the partition's; the others are those of calls, ms since 1970."""

    #: Clock times: when it was called last, and until when it is learned.
    called_ms: int
    learns_until_ms: int
    first_ms: int
    last_ms: int
    count: int = 0
    #: Calls by status.
    statuses: dict[str, int] = {}
    shape: Shape | None = None
    #: Calls that had more places than are learned.
    truncated: int = 0
    #: Once it is published.
    known: Known | None = None
    #: About the bytes of `known`.
    known_bytes: int = 0


class Drift(msgspec.Struct, frozen=True):
    """One thing that is new."""

    kind: ChangeKind
    pointer: str
    was: list[str]
    now: list[str]


def learn(endpoint: Endpoint, call: ApiCall) -> list[Drift]:
    """Adds a call; what it shows to be other than what was published."""
    endpoint.count += 1
    endpoint.first_ms, endpoint.last_ms = min(endpoint.first_ms, call.at_ms), max(endpoint.last_ms, call.at_ms)
    status = str(call.status)
    _count(endpoint.statuses, status, 1)
    if call.shape is None:
        return []
    _add(endpoint, call.shape)
    if endpoint.known is None:
        return []
    room = _Room(KNOWN_BYTES_MAX - endpoint.known_bytes)
    drifts = list(_drift(endpoint.known, call.shape, "", room))
    endpoint.known_bytes = KNOWN_BYTES_MAX - room.bytes
    endpoint.truncated += room.is_short
    return drifts


def join(endpoint: Endpoint, other: Endpoint) -> None:
    """Adds what is known of another endpoint that turned out to be this one; neither is published."""
    endpoint.called_ms = max(endpoint.called_ms, other.called_ms)
    endpoint.learns_until_ms = min(endpoint.learns_until_ms, other.learns_until_ms)
    endpoint.first_ms = min(endpoint.first_ms, other.first_ms)
    endpoint.last_ms = max(endpoint.last_ms, other.last_ms)
    endpoint.count += other.count
    endpoint.truncated += other.truncated
    for status, count in other.statuses.items():
        _count(endpoint.statuses, status, count)
    if other.shape is not None:
        _add(endpoint, other.shape)


def publish(endpoint: Endpoint) -> None:
    """Later calls are compared with what was learned so far."""
    shape = endpoint.shape
    endpoint.known = Known(["object"]) if shape is None else _known(shape, "")
    endpoint.known_bytes = 0 if shape is None else _known_bytes("", shape)


def _add(endpoint: Endpoint, shape: Shape) -> None:
    if endpoint.shape is not None and not teaches(endpoint.shape, shape):
        # Most calls. Nothing is added, so nothing is measured: only counts may take some bytes more.
        endpoint.shape = counted(endpoint.shape, shape)
        return
    whole = shape if endpoint.shape is None else merged(endpoint.shape, shape)
    if size_of(whole) > PLACES_MAX:
        endpoint.truncated += 1
        return
    whole = discreet(whole)
    if _bytes_of(whole) > SHAPE_BYTES_MAX:
        whole = without_words(whole)
    if _bytes_of(whole) > SHAPE_BYTES_MAX:
        endpoint.truncated += 1
        return
    endpoint.shape = whole


def _bytes_of(shape: Shape) -> int:
    return len(msgspec.msgpack.encode(shape))


def _count(statuses: dict[str, int], status: str, number: int) -> None:
    if status in statuses or len(statuses) < STATUSES_MAX:
        statuses[status] = statuses.get(status, 0) + number


def _known_bytes(name: str, shape: Shape) -> int:
    """About the bytes of what is known of a place and all below it."""
    inner = [("", one) for one in (shape.items, shape.values) if one is not None]
    return (
        _KNOWN_PLACE_BYTES
        + len(name.encode(errors="surrogatepass"))
        + sum(_known_bytes(*one) for one in (*inner, *shape.fields.items()))
    )


class _Room:
    """How many bytes more may be known."""

    def __init__(self, room_bytes: int) -> None:
        self.bytes = room_bytes
        self.is_short = False

    def take_place(self, name: str, shape: Shape) -> bool:
        """Whether there is room for a place and all below it, which is taken then."""
        needed = _known_bytes(name, shape)
        if needed > self.bytes:
            self.is_short = True
            return False
        self.bytes -= needed
        return True


def _known(shape: Shape, pointer: str) -> Known:
    never = pointer in _NEVER_REQUIRED
    fields = {}
    for name, field in shape.fields.items():
        fields[name] = _known(field, _below(pointer, name))
        fields[name].is_required = not never and name not in shape.optional
    return Known(
        list(shape.types),
        fields=fields,
        items=None if shape.items is None else _known(shape.items, f"{pointer}/*"),
        values=None if shape.values is None else _known(shape.values, f"{pointer}/*"),
    )


def _drift(known: Known, shape: Shape, pointer: str, room: _Room) -> Iterator[Drift]:
    """What in `shape` is not in `known`, which from then on has it, as far as there is room."""
    if pointer in _NO_DRIFT or (pointer.startswith("/response/") and pointer.endswith("/headers")):
        return
    fresh = [
        one for one in shape.types if one not in known.types and not (one == "integer" and "number" in known.types)
    ]
    if fresh:
        was, known.types = known.types, [*known.types, *fresh]
        yield Drift("type_change", pointer, was, known.types)
    for name, field in shape.fields.items():
        below = _below(pointer, name)
        inner = known.fields.get(name)
        if inner is not None:
            inner.missed = 0
            yield from _drift(inner, field, below, room)
        elif room.take_place(name, field):
            known.fields[name] = _known(field, below)
            yield Drift("new_field", below, [], list(field.types))
    if "object" in shape.types:
        yield from _vanished(known, shape, pointer)
    if shape.items is not None:
        if known.items is not None:
            yield from _drift(known.items, shape.items, f"{pointer}/*", room)
        elif room.take_place("", shape.items):
            known.items = _known(shape.items, f"{pointer}/*")
    if shape.values is not None:
        if known.values is not None:
            yield from _drift(known.values, shape.values, f"{pointer}/*", room)
        elif room.take_place("", shape.values):
            known.values = _known(shape.values, f"{pointer}/*")


def _vanished(known: Known, shape: Shape, pointer: str) -> Iterator[Drift]:
    for name, inner in known.fields.items():
        if not inner.is_required or name in shape.fields:
            continue
        inner.missed += 1
        # Reported once for each absence; reported again if the field returns and is missing again.
        if inner.missed == VANISHED_CALLS:
            yield Drift("vanished_field", _below(pointer, name), inner.types, [])


def _below(pointer: str, name: str) -> str:
    """JSON pointer (RFC 6901) of a name below."""
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
