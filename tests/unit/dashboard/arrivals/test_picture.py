"""The newest beacons of a customer, and what was rejected: nothing of another customer, and bounded."""

from services.dashboard.arrivals.picture import FIELDS_MAX, LISTED_MAX, TEXT_CHARS_MAX, Arrivals, Read, picture
from shared import codec
from shared.schemas.beacon import Beacon


def beacon(customer_id: str, view_id: str, at_ms: int, write_key: str | None = None, **attrs: str) -> Read:
    value = codec.BEACON.encode(
        Beacon(
            schema_version=1, source="mux", customer_id=customer_id, view_id=view_id, event="playing",
            source_event="playing", recv_time_ms=at_ms, client_time_ms=at_ms - 5, seq=3, ip_trunc="192.0.2.0",
            user_agent="a browser", attrs=attrs, write_key=write_key,
        )
    )  # fmt: skip
    return Read(at_ms, f"{customer_id}:{view_id}".encode(), value, {})


def refused(key: bytes | None, at_ms: int = 1, value: bytes = b"{", **headers: str) -> Read:
    return Read(at_ms, key, value, {"reason": "invalid", "detail": "no", "origin": "/", **headers})


def drawn(beacons: list[Read], rejected: list[Read], *, is_operator: bool = False) -> Arrivals:
    return picture("acme", beacons, rejected, now_ms=9, seconds=600, is_cut=False, is_operator=is_operator)


def test_the_newest_come_first_with_the_names_of_their_fields_and_no_address() -> None:
    found = drawn([beacon("acme", "v1", 10, video_title="x"), beacon("acme", "v1", 30), beacon("acme", "v2", 20)], [])
    assert [one.appended_ms for one in found.beacons] == [30, 20, 10]
    assert (found.beacons_n, found.views_n) == (3, 2)
    assert found.beacons[2].fields == ["video_title"]
    assert not {"ip_trunc", "user_agent", "attrs"} & set(found.beacons[0].__struct_fields__)


def test_beacons_are_counted_by_their_write_keys_and_those_of_one_can_be_asked_for() -> None:
    came = [
        beacon("acme", "v1", 10, "web-key"),
        beacon("acme", "v2", 20, "tv-key"),
        beacon("acme", "v2", 30, "tv-key"),
        beacon("acme", "v3", 25),
        beacon("other", "v4", 40, "web-key"),
        Read(5, b"acme:v5", b"{not json", {}),
    ]
    found = drawn(came, [])
    assert [(one.key, one.beacons_n, one.newest_ms) for one in found.keys] == [
        ("tv-key", 2, 30),
        ("acme", 2, 25),
        ("web-key", 1, 10),
    ]
    assert [one.write_key for one in found.beacons] == ["tv-key", "acme", "tv-key", "web-key"]
    of_one = picture("acme", came, [], now_ms=9, seconds=600, is_cut=False, is_operator=False, key="web-key")
    assert [one.view_id for one in of_one.beacons] == ["v1"]
    assert (of_one.beacons_n, of_one.views_n, of_one.keys) == (1, 1, found.keys)


def test_a_customer_whose_name_begins_with_the_same_letters_is_another_one() -> None:
    others = [refused(b"acme-tv:v"), refused(None, customer="acme-tv")]
    found = drawn([beacon("acme-tv", "v", 1), beacon("acm", "v", 1)], others)
    assert (found.beacons_n, found.rejected_n, found.nobodys) == (0, 0, None)


def test_what_names_a_customer_and_no_view_is_that_customers() -> None:
    found = drawn([], [refused(None, customer="acme"), refused(b"acme:v1", at_ms=2)])
    assert [(one.view_id, one.reason, one.text) for one in found.rejected] == [
        ("v1", "invalid", "{"),
        (None, "invalid", "{"),
    ]


def test_what_names_nobody_is_seen_by_those_alone_who_run_the_installation() -> None:
    rejected = [refused(None, reason="unknown_customer")]
    assert drawn([], rejected).nobodys is None
    nobodys = drawn([], rejected, is_operator=True).nobodys
    assert nobodys is not None
    assert [one.reason for one in nobodys] == ["unknown_customer"]


def test_input_with_a_key_that_is_no_customers_is_nobodys_with_its_key() -> None:
    # Collectors keep it under the key, as if that were a customer.
    rejected = [
        refused(b"opco-typo:v1", at_ms=4, reason="unknown_customer", customer="opco-typo"),
        refused(None, at_ms=5, reason="unknown_customer", customer="opco-typo"),
        refused(b"pk_old:v1", at_ms=3, reason="revoked_key"),
        refused(None, at_ms=2),
        # These are of others, and of the customer that is asked for.
        refused(b"other:v1", at_ms=6, customer="other"),
        refused(b"acme:v1", at_ms=7, reason="unknown_customer", customer="acme"),
    ]
    assert drawn([], rejected).nobodys is None
    found = drawn([], rejected, is_operator=True)
    assert found.nobodys is not None
    assert [(one.key, one.view_id) for one in found.nobodys] == [
        ("opco-typo", None),
        ("opco-typo", "v1"),
        ("pk_old", "v1"),
        (None, None),
    ]
    assert [(one.key, one.reason) for one in found.rejected] == [("acme", "unknown_customer")]


def test_lists_and_texts_are_bounded_and_damaged_beacons_are_counted_alone() -> None:
    many = [beacon("acme", "v", at, **{f"f{n}": "x" for n in range(FIELDS_MAX + 9)}) for at in range(LISTED_MAX + 9)]
    wild = refused(b"acme:v", value=b"\xff" * 5_000, detail="d" * 900)
    found = drawn([*many, Read(99_999, b"acme:v", b"{not json", {})], [wild] * (LISTED_MAX + 9))
    assert found.beacons_n == LISTED_MAX + 10
    assert len(found.beacons) == LISTED_MAX - 1
    assert {len(one.fields) for one in found.beacons} == {FIELDS_MAX}
    assert len(found.rejected) == LISTED_MAX
    assert (len(found.rejected[0].text), len(found.rejected[0].detail)) == (TEXT_CHARS_MAX, TEXT_CHARS_MAX)
