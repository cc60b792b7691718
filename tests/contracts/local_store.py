"""What every `LocalStore` must do; each implementation's test class inherits these."""

import pytest

from services.processor.engine.state.local import LocalMeta, LocalStore
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import ROW_FORMAT, NewerFormat, pack

START = (0, b"")


class LocalStoreContract:
    """Subclasses provide `make_store`."""

    def make_store(self) -> LocalStore:
        raise NotImplementedError

    def test_a_new_store_stands_nowhere(self) -> None:
        store = self.make_store()
        assert store.position() is None
        assert store.get(b"\x01a") is None
        assert store.due(START, 1 << 60, 10) == []

    def test_rows_and_position_are_there_once_written(self) -> None:
        store = self.make_store()
        position = LocalMeta(Meta({"beacons": 3}, 9, 1), 7)
        store.write({b"\x01a": pack(0, b"x")}, position)
        assert store.get(b"\x01a") == pack(0, b"x")
        assert store.position() == position

    def test_rows_without_a_position_leave_it_where_it_was(self) -> None:
        store = self.make_store()
        position = LocalMeta(Meta({}, 1, 1), 1)
        store.write({}, position)
        store.write({b"\x01a": pack(0, b"x")}, None)
        assert store.position() == position

    def test_a_position_of_a_newer_version_is_refused(self) -> None:
        store = self.make_store()
        store.write({}, LocalMeta(Meta({}, 1, 1, format=ROW_FORMAT + 1), 1))
        with pytest.raises(NewerFormat, match="upgrade"):
            store.position()

    def test_none_deletes_a_row(self) -> None:
        store = self.make_store()
        store.write({b"\x01a": pack(0, b"x")}, None)
        store.write({b"\x01a": None}, None)
        assert store.get(b"\x01a") is None

    def test_timers_come_in_the_order_of_deadline_and_key(self) -> None:
        store = self.make_store()
        rows = {b"\x01c": pack(20, b""), b"\x01b": pack(10, b""), b"\x01a": pack(20, b""), b"\x01d": pack(0, b"")}
        store.write(dict(rows), None)
        assert store.due(START, 100, 10) == [(10, b"\x01b"), (20, b"\x01a"), (20, b"\x01c")]

    def test_due_is_bounded_by_time_and_number_and_goes_on_after_an_entry(self) -> None:
        store = self.make_store()
        store.write({bytes([1, number]): pack(number, b"") for number in range(1, 9)}, None)
        assert store.due(START, 4, 2) == [(1, b"\x01\x01"), (2, b"\x01\x02")]
        assert store.due((2, b"\x01\x02"), 4, 9) == [(3, b"\x01\x03"), (4, b"\x01\x04")]
        assert store.due((4, b"\x01\x04"), 4, 9) == []

    def test_a_deadline_beyond_one_byte_keeps_its_place(self) -> None:
        store = self.make_store()
        store.write({b"\x01a": pack(1_795_000_000_000, b""), b"\x01b": pack(255, b"")}, None)
        assert store.due(START, 1 << 60, 9) == [(255, b"\x01b"), (1_795_000_000_000, b"\x01a")]

    def test_timers_up_to_the_clock_of_the_position_have_fired_and_are_forgotten(self) -> None:
        store = self.make_store()
        store.write({b"\x01a": pack(5, b"x"), b"\x01b": pack(6, b"y")}, LocalMeta(Meta({}, 5, 1), 1))
        assert store.due(START, 100, 10) == [(6, b"\x01b")]
        assert store.get(b"\x01a") == pack(5, b"x")

    def test_a_row_written_again_with_its_deadline_is_due_once(self) -> None:
        store = self.make_store()
        store.write({b"\x01a": pack(5, b"x")}, None)
        store.write({b"\x01a": pack(5, b"y")}, None)
        assert store.due(START, 100, 10) == [(5, b"\x01a")]

    def test_a_page_has_the_next_rows_in_the_order_of_their_keys(self) -> None:
        store = self.make_store()
        rows = {b"\x01c": b"c", b"\x01a": b"a", b"\x01b": b"b", b"\x02a": b"other", b"\x01d": b"d", b"\x01ab": b"ab"}
        store.write({key: pack(0, row) for key, row in rows.items()}, None)
        store.write({b"\x01b": None}, LocalMeta(None, 1))
        assert store.page(b"\x01", b"\x02", 2) == [(b"\x01a", pack(0, b"a")), (b"\x01ab", pack(0, b"ab"))]
        assert store.page(b"\x01ab\x00", b"\x02", 9) == [(b"\x01c", pack(0, b"c")), (b"\x01d", pack(0, b"d"))]
        assert store.page(b"\x01e", b"\x02", 9) == []
