"""Bodies unpacked: every encoding, and bombs that are never unpacked whole."""

import contextlib
import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from services.collector.intake.body import RATIO_FREE_BYTES, beginning, unpacked
from services.collector.intake.post import InvalidInput, Rules
from tests.unit.collector.intake.bodies import post

RULES = Rules(body_bytes_max=2_000_000, unpack_ratio_max=100)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("size", [0, 1, RATIO_FREE_BYTES])
def test_a_packed_body_is_unpacked(encoding: str, size: int) -> None:
    body = b"x" * size
    assert unpacked(post(PACKERS[encoding](body), content_encoding=encoding), RULES) == body


@pytest.mark.parametrize("encoding", PACKERS)
def test_the_beginning_of_a_body_is_read_without_the_rest(encoding: str) -> None:
    packed = post(PACKERS[encoding](b"abc" + b"x" * 100_000), content_encoding=encoding)
    assert beginning(packed, RULES, 4) == b"abcx"
    assert beginning(post(b"abcdef"), RULES, 4) == b"abcd"
    assert beginning(post(b"abcdef", content_encoding=encoding), RULES, 4) in (b"abcd", b"")


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_body_cut_short_or_followed_by_something_is_refused(encoding: str) -> None:
    packed = PACKERS[encoding](bytes(range(256)) * 20)
    for body in (packed[:-3], packed + packed):
        with pytest.raises(InvalidInput) as invalid:
            unpacked(post(body, content_encoding=encoding), RULES)
        assert invalid.value.reason == "undecodable"


@pytest.mark.thorough
@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize(("size", "ratio"), [(60_000_000, 10_000), (1_900_000, 100)])
def test_a_bomb_is_never_unpacked_whole(encoding: str, size: int, ratio: int) -> None:
    bomb = post(PACKERS[encoding](b" " * size), content_encoding=encoding)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput) as invalid:
            unpacked(bomb, Rules(body_bytes_max=RULES.body_bytes_max, unpack_ratio_max=ratio))
        assert tracemalloc.get_traced_memory()[1] < 5 * RULES.body_bytes_max
    finally:
        tracemalloc.stop()
    assert invalid.value.reason == "too_large"
    assert ("times its size" in invalid.value.detail) == (ratio == 100)


@pytest.mark.thorough
@pytest.mark.parametrize("encoding", PACKERS)
def test_a_bomb_is_not_unpacked_beyond_the_ratio(encoding: str) -> None:
    bomb = post(PACKERS[encoding](b" " * 20_000_000), content_encoding=encoding)
    bytes_max = max(10 * len(bomb.body), RATIO_FREE_BYTES)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="times its size"):
            unpacked(bomb, Rules(body_bytes_max=50_000_000, unpack_ratio_max=10))
        assert tracemalloc.get_traced_memory()[1] < 5 * bytes_max + 5_000_000
    finally:
        tracemalloc.stop()


def test_an_encoding_never_heard_of_is_refused() -> None:
    with pytest.raises(InvalidInput, match="compress"):
        unpacked(post(b"{}", content_encoding="compress"), RULES)


@given(st.binary(max_size=300), st.sampled_from([*PACKERS, ""]), st.booleans())
def test_nothing_but_a_refusal_is_ever_raised(data: bytes, encoding: str, is_headed: bool) -> None:
    body = PACKERS[encoding](b"beacons")[:9] + data if is_headed and encoding else data
    with contextlib.suppress(InvalidInput):
        unpacked(post(body, content_encoding=encoding), RULES)
