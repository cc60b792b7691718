"""Keys go where the Java client would put them."""

import pytest

from shared.partitioning import murmur2, partition_of, view_key


@pytest.mark.parametrize(
    ("data", "signed_hash"),
    [
        # The known vectors of Apache Kafka's own test of Utils.murmur2.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_gives_the_java_clients_hash(data: bytes, signed_hash: int) -> None:
    assert murmur2(data) == signed_hash & 0xFFFFFFFF


def test_a_partition_is_the_positive_hash_modulo_the_count() -> None:
    assert partition_of(b"foobar", 8) == (-790332482 & 0x7FFFFFFF) % 8


def test_customer_and_view_cannot_run_into_each_other() -> None:
    assert view_key("a", "b:c") == b"a:b:c"
    assert view_key("a_b", "c") != view_key("a", "b_c")
