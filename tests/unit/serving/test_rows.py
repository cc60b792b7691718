"""Records of topic views as rows of Postgres: what has a row, what has none, and which revision is the newest."""

import msgspec
import pytest

from services.rim.database.view_rows import COLUMNS
from services.serving.rows import newest, row_of
from shared.codec import VIEW
from shared.measures import DIMENSIONS, FIELDS, MEMBER_CHARACTERS_MAX
from shared.schemas.view import View

ONE = View(
    schema_version=1,
    revision=2,
    customer_id="acme",
    view_id="one",
    source="mux",
    day=20_000,
    first_append_ms=1_770_000_000_000,
    last_append_ms=1_770_000_060_000,
    view_start_ms=1_770_000_000_000,
    view_end_ms=1_770_000_059_000,
    end_reason="clean",
    view_dropped=False,
    beacon_count=3,
)


def columns(view: View) -> dict[str, object]:
    row = row_of(VIEW.encode(view))
    assert not isinstance(row, str)
    return dict(zip(COLUMNS, row, strict=True))


def test_a_row_has_the_fields_of_its_view_and_the_record_itself() -> None:
    view = msgspec.structs.replace(ONE, watch_ms=7, startup_ms=5, country="DE", viewer_id="v")
    found = columns(view)
    for name in ("customer_id", "view_id", "day", "revision", "viewer_id", *DIMENSIONS, *FIELDS):
        assert found[name] == getattr(view, name), name
    assert VIEW.decode(str(found["document"]).encode()) == view


def test_texts_are_as_columns_hold_them_and_a_viewers_id_is_whole() -> None:
    found = columns(msgspec.structs.replace(ONE, country="x" * 200, cdn="a\0b", viewer_id="v\0" + "w" * 200))
    assert found["country"] == "x" * MEMBER_CHARACTERS_MAX
    assert found["cdn"] == "a\ufffdb"
    assert found["viewer_id"] == "v\ufffd" + "w" * 200


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "undecodable"),
        (b"", "undecodable"),
        (b"{", "undecodable"),
        (b"\xff\xfe", "undecodable"),
        (VIEW.encode(msgspec.structs.replace(ONE, schema_version=2)), "undecodable"),
        (VIEW.encode(msgspec.structs.replace(ONE, watch_ms=-1)), "undecodable"),
        (VIEW.encode(msgspec.structs.replace(ONE, customer_id="a b")), "invalid"),
        (VIEW.encode(msgspec.structs.replace(ONE, view_id="a\0")), "invalid"),
        (VIEW.encode(msgspec.structs.replace(ONE, view_id="v" * 2_001)), "invalid"),
    ],
)
def test_what_is_no_view_has_no_row(value: bytes | None, reason: str) -> None:
    assert row_of(value) == reason


def test_of_each_view_and_day_the_newest_revision_stays_and_of_equal_ones_the_last() -> None:
    def row(**fields: object) -> tuple[object, ...]:
        found = row_of(VIEW.encode(msgspec.structs.replace(ONE, **fields)))
        assert not isinstance(found, str)
        return found

    old, new, again = row(revision=1), row(revision=3), row(revision=3, watch_ms=9)
    reprocessed, other_day = row(generation=2, revision=1), row(revision=1, day=20_001)
    assert newest([old, new, again, old, other_day]) == [again, other_day]
    assert newest([reprocessed, new]) == [reprocessed]
