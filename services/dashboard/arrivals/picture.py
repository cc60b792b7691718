"""The answer of `/v1/arrivals`, from records of topics `beacons` and `rejected`. Pure; bounded."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, NamedTuple

import msgspec

from shared import codec
from shared.codec import NO_JSON, Undecodable
from shared.schemas.beacon import Beacon

LISTED_MAX: Final = 50
FIELDS_MAX: Final = 100
TEXT_CHARS_MAX: Final = 300
#: Why a write key is no customer's: collectors keep such input under the key, as if that were a customer.
_KEY_REFUSED: Final = frozenset({"unknown_customer", "revoked_key"})


class AskedArrivals(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters."""

    customer: Annotated[str, msgspec.Meta(description="a customer")]
    key: Annotated[
        str, msgspec.Meta(max_length=64, description="a write key: beacons that came under it alone; without it all")
    ] = ""


class Read(NamedTuple):
    """A record as it was read."""

    appended_ms: int
    key: bytes | None
    value: bytes
    headers: Mapping[str, str]


class Arrived(msgspec.Struct, frozen=True):
    """A beacon that Kafka has; `fields` are the names of what the client sent with it. Times are ms since 1970."""

    appended_ms: int
    client_time_ms: int
    source: str
    event: str
    source_event: str
    view_id: str
    seq: int | None
    write_key: str
    browser: str | None
    country: str | None
    fields: list[str]


class ArrivedUnder(msgspec.Struct, frozen=True):
    """A write key under which beacons came: how many, and when Kafka got the newest, ms since 1970."""

    key: str
    beacons_n: int
    newest_ms: int


class Refused(msgspec.Struct, frozen=True):
    """Input that was rejected: why, where it came in, the beginning of its text; `view_id` is null where it could not be read.

    `key`: the write key that was used, where it is no customer's; null for other reasons.
    """

    appended_ms: int
    reason: str
    detail: str
    origin: str
    view_id: str | None
    text: str
    key: str | None


class Arrivals(msgspec.Struct, frozen=True):
    """The newest of the last `seconds`, at most `LISTED_MAX` of each list; `beacons_n` and `views_n` count all that were read.

    `keys` are the write keys of all beacons, also where those of one key are asked for.

    `is_cut`: more records came than are read, so older ones of these seconds are missing. `nobodys`: input that names no customer,
    and input under a write key that is unknown or revoked; for those alone who run the installation, null for others.
    """

    now_ms: int
    seconds: int
    is_cut: bool
    beacons_n: int
    views_n: int
    beacons: list[Arrived]
    keys: list[ArrivedUnder]
    rejected_n: int
    rejected: list[Refused]
    nobodys: list[Refused] | None


def picture(
    customer_id: str,
    beacons: Iterable[Read],
    rejected: Iterable[Read],
    *,
    now_ms: int,
    seconds: int,
    is_cut: bool,
    is_operator: bool,
    key: str = "",
) -> Arrivals:
    """The answer for a customer. Records of others are left out by their keys, before anything of them is read."""
    prefix = f"{customer_id}:".encode()
    keyed = [
        (record, _write_key_of(record) or customer_id)
        for record in beacons
        if record.key is not None and record.key.startswith(prefix)
    ]
    own = [record for record, under in keyed if key in ("", under)]
    refused = list(rejected)
    mine = [record for record in refused if _customer_of(record) == customer_id]
    nobodys = [record for record in refused if _is_nobodys(record) and _customer_of(record) != customer_id]
    return Arrivals(
        now_ms=now_ms,
        seconds=seconds,
        is_cut=is_cut,
        beacons_n=len(own),
        views_n=len({record.key for record in own}),
        beacons=[found for record in _newest(own) if (found := _arrived(record)) is not None],
        keys=_keys(keyed),
        rejected_n=len(mine),
        rejected=[_refused(record) for record in _newest(mine)],
        nobodys=[_refused(record) for record in _newest(nobodys)] if is_operator else None,
    )


class _Keyed(msgspec.Struct):
    write_key: str | None = None


_KEYED: Final = msgspec.json.Decoder(_Keyed)


def _write_key_of(record: Read) -> str | None:
    with contextlib.suppress(*NO_JSON):
        return _KEYED.decode(record.value).write_key
    return None


def _keys(keyed: Iterable[tuple[Read, str]]) -> list[ArrivedUnder]:
    """The keys with the newest beacons first."""
    found: dict[str, tuple[int, int]] = {}
    for record, key in keyed:
        count, newest_ms = found.get(key, (0, 0))
        found[key] = count + 1, max(newest_ms, record.appended_ms)
    listed = [ArrivedUnder(key, *counted) for key, counted in found.items()]
    return sorted(listed, key=lambda one: -one.newest_ms)[:LISTED_MAX]


def _customer_of(record: Read) -> str | None:
    """Whose the input is. What names a customer and no view has no key."""
    if record.key is not None:
        return record.key.partition(b":")[0].decode(errors="replace")
    return record.headers.get("customer")


def _is_nobodys(record: Read) -> bool:
    return _customer_of(record) is None or record.headers.get("reason") in _KEY_REFUSED


def _newest(records: list[Read]) -> list[Read]:
    return sorted(records, key=lambda record: -record.appended_ms)[:LISTED_MAX]


def _arrived(record: Read) -> Arrived | None:
    try:
        beacon: Beacon = codec.BEACON.decode(record.value)
    except Undecodable:
        # A later version's, or damaged: the processor rejects it with its reason.
        return None
    return Arrived(
        appended_ms=record.appended_ms,
        client_time_ms=beacon.client_time_ms,
        source=beacon.source,
        event=beacon.event,
        source_event=beacon.source_event,
        view_id=beacon.view_id,
        seq=beacon.seq,
        write_key=beacon.write_key or beacon.customer_id,
        browser=beacon.browser,
        country=beacon.country,
        fields=sorted(beacon.attrs)[:FIELDS_MAX],
    )


def _refused(record: Read) -> Refused:
    view_id = None if record.key is None else record.key.partition(b":")[2].decode(errors="replace")
    named = {name: record.headers.get(name, "")[:TEXT_CHARS_MAX] for name in ("reason", "detail", "origin")}
    text = record.value[: 4 * TEXT_CHARS_MAX].decode(errors="replace")[:TEXT_CHARS_MAX]
    key = (_customer_of(record) or "")[:TEXT_CHARS_MAX] if named["reason"] in _KEY_REFUSED else ""
    return Refused(appended_ms=record.appended_ms, view_id=view_id or None, text=text, key=key or None, **named)
