"""Files of a savepoint: what is read is what was written, and what is not whole is refused."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import ROW_FORMAT, NewerFormat, pack
from services.processor.runtime.operations.state import savepoint
from services.processor.runtime.operations.state.changing import Unsafe
from services.processor.runtime.operations.state.savepoint import SavedPartition, Savepoint, SavepointWrong
from services.processor.runtime.operations.state.whole import read_from, refuse_what_does_not_fit
from tests.unit.processor.engine.counting import APPLICATION

META = Meta({"beacons": 7}, 1_000, 3, store_formats={1: 1}, failing={b"\xff": (1, 2)})


def saved_in(folder: Path, rows: list[tuple[bytes, bytes]]) -> SavedPartition:
    saved = savepoint.write_rows(folder, 4, rows, META)
    savepoint.write(folder, Savepoint(savepoint.FORMAT, "counting", ROW_FORMAT, {1: "counts"}, [saved]))
    return saved


@given(rows=st.lists(st.tuples(st.binary(min_size=1), st.binary())))
def test_rows_and_position_are_read_as_they_were_written(
    rows: list[tuple[bytes, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    saved_in(folder, rows)
    (read,) = savepoint.read(folder).partitions
    savepoint.verify(folder, read)
    assert list(savepoint.rows_of(folder, read)) == rows
    assert (read.meta, read.rows) == (META, len(rows))


def test_a_folder_without_the_last_file_is_no_savepoint(tmp_path: Path) -> None:
    savepoint.write_rows(tmp_path, 0, [(b"\x01k", b"row")], META)
    with pytest.raises(SavepointWrong, match="holds no savepoint"):
        savepoint.read(tmp_path)


def test_a_file_that_was_changed_or_is_gone_is_refused(tmp_path: Path) -> None:
    saved = saved_in(tmp_path, [(b"\x01k", pack(0, b"row"))])
    path = tmp_path / saved.file
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SavepointWrong, match="not as it was written"):
        savepoint.verify(tmp_path, saved)
    path.unlink()
    with pytest.raises(SavepointWrong, match="No such file"):
        savepoint.verify(tmp_path, saved)


@pytest.mark.parametrize("changed", [{"format": 2}, {"row_format": ROW_FORMAT + 1}])
def test_a_newer_format_is_refused_before_anything_else_of_it_is_read(changed: dict[str, int], tmp_path: Path) -> None:
    stands = {"format": 1, "row_format": ROW_FORMAT, "unknown": []} | changed
    (tmp_path / savepoint.NAME).write_bytes(msgspec.json.encode(stands))
    with pytest.raises(NewerFormat, match="upgrade it"):
        savepoint.read(tmp_path)
    (tmp_path / savepoint.NAME).write_bytes(b"{}")
    with pytest.raises(SavepointWrong):
        savepoint.read(tmp_path)


def test_a_savepoint_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    saved = saved_in(tmp_path, [])
    whole = savepoint.read(tmp_path)
    refuse_what_does_not_fit(whole, APPLICATION, [4])
    with pytest.raises(Unsafe, match="is of traces"):
        refuse_what_does_not_fit(msgspec.structs.replace(whole, application="traces"), APPLICATION, [4])
    with pytest.raises(Unsafe, match="1 partitions, counting has 2"):
        refuse_what_does_not_fit(whole, APPLICATION, [4, 5])
    newer = msgspec.structs.replace(saved, meta=msgspec.structs.replace(META, store_formats={1: 2}))
    with pytest.raises(NewerFormat, match="upgrade it"):
        refuse_what_does_not_fit(msgspec.structs.replace(whole, partitions=[newer]), APPLICATION, [4])


def test_a_position_with_other_offsets_forgets_what_was_said_in_the_former_ones() -> None:
    meta = msgspec.structs.replace(META, leader_epochs={"beacons": 2, "other": 5}, version_at=4)
    moved = read_from(meta, {"beacons": 20})
    assert moved == msgspec.structs.replace(
        meta,
        next_offsets={"beacons": 20},
        commit_number=4,
        leader_epochs={"other": 5},
        failing={},
        version_at=None,
    )
