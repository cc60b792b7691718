"""Records survive the way through bytes; other bytes are recognized."""

import msgspec
import pytest

from shared import codec
from shared.codec import Undecodable
from shared.schemas.beacon import Beacon

BEACON = Beacon(
    schema_version=1,
    source="mux",
    customer_id="acme",
    view_id="v1",
    event="playing",
    source_event="playing",
    recv_time_ms=2,
    client_time_ms=1,
    seq=3,
    attrs={"view_watch_time": 12, "nested": {"a": [1, None]}},
)


def test_a_record_comes_back_as_it_was() -> None:
    assert codec.BEACON.decode(codec.BEACON.encode(BEACON)) == BEACON


def test_the_version_is_in_the_bytes_only_when_it_is_not_the_first() -> None:
    assert codec.BEACON.decode(codec.BEACON.encode(BEACON)).schema_version == 1


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"source":"mux"}', b"\xff\xfe"])
def test_what_is_no_record_is_undecodable(data: bytes) -> None:
    with pytest.raises(Undecodable):
        codec.BEACON.decode(data)


def test_a_newer_version_is_undecodable() -> None:
    newer = msgspec.structs.replace(BEACON, schema_version=99)
    with pytest.raises(Undecodable, match="newer"):
        codec.BEACON.decode(codec.BEACON.encode(newer))
