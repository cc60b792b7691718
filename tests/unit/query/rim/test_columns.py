"""Columns in memory: rows of a file as they are, texts as numbers, within a number of bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.query.core.sql.lots import SAMPLED_BY, lots
from services.query.rim import columns
from services.query.rim.columns import Columns, Kept, TooManyValues, Values
from shared.statistics.suspects.sampling import FEW_OF

FIELDS = ("cdn", "watch_ms")
#: Times of the few, and of others.
TIMES = np.arange(1_000, dtype=np.int64)
IS_FEW = lots(TIMES) % FEW_OF == 0
FEW, OTHERS = TIMES[IS_FEW].tolist(), TIMES[~IS_FEW].tolist()
BIG = 1 << 40


def a_file(folder: Path, name: str, **given: list[Any]) -> str:
    """A file of the warehouse with these columns; four rows."""
    whole: dict[str, list[Any]] = {
        "customer_id": ["acme", "acme", "other", "acme"],
        "hour": [500_000, 500_001, 500_001, 500_002],
        "deleted": [False] * 4,
        "cdn": ["fastly", None, "akamai", "fastly"],
        "watch_ms": [1, 2, 3, 4],
        **given,
    }
    path = str(folder / name)
    pq.write_table(pa.table(whole), path)
    return path


def kept(held: Columns, *paths: str, fields: tuple[str, ...] = FIELDS) -> Kept:
    for path, missing in held.missing(dict.fromkeys(paths, 4), fields).items():
        held.read(path, missing)
    found = held.find(paths, fields)
    assert found is not None
    return found


def texts(found: Kept, name: str) -> list[str | None]:
    values = found.values[name].table()["value"].to_pylist()
    return [None if code is None else values[code] for code in found.table[name].to_pylist()]


def test_a_number_means_the_same_text_in_every_file(tmp_path: Path) -> None:
    held = Columns(1 << 20)
    first = a_file(tmp_path, "1")
    second = a_file(tmp_path, "2", cdn=["own", "akamai", None, "fastly"])

    found = kept(held, first, second)

    assert texts(found, "cdn") == ["fastly", None, "akamai", "fastly", "own", "akamai", None, "fastly"]
    assert texts(found, "customer_id") == ["acme", "acme", "other", "acme"] * 2
    assert found.table["watch_ms"].to_pylist() == [1, 2, 3, 4] * 2
    assert found.paths == {first, second}


def test_texts_are_cut_as_everywhere_and_two_that_are_cut_alike_are_one(tmp_path: Path) -> None:
    found = kept(Columns(1 << 20), a_file(tmp_path, "1", cdn=["ä" * 120, "ä" * 100 + "b", "zero\0", None]))

    assert texts(found, "cdn") == ["ä" * 100, "ä" * 100, "zero�", None]


def test_rows_that_are_marked_in_the_file_are_left_out_of_every_column(tmp_path: Path) -> None:
    path = a_file(tmp_path, "1", deleted=[False, True, None, False])
    held = Columns(1 << 20)

    assert kept(held, path, fields=("cdn",)).table["hour"].to_pylist() == [500_000, 500_002]
    # A column that is read later has the same rows.
    assert kept(held, path).table["watch_ms"].to_pylist() == [1, 4]


def test_a_file_without_a_column_has_nulls(tmp_path: Path) -> None:
    found = kept(Columns(1 << 20), a_file(tmp_path, "1"), fields=("browser", "seek_ms", "spi_good"))

    assert all(found.table[name].null_count == 4 for name in ("browser", "seek_ms", "spi_good"))


def test_whole_numbers_take_32_bits_until_one_needs_more(tmp_path: Path) -> None:
    held = Columns(1 << 20)
    small = a_file(tmp_path, "1")
    large = a_file(tmp_path, "2", watch_ms=[BIG, 0, 0, None])

    assert kept(held, small).table["watch_ms"].type == pa.int32()
    found = kept(held, small, large)

    assert found.table["watch_ms"].type == pa.int64()
    assert found.table["watch_ms"].to_pylist() == [1, 2, 3, 4, BIG, 0, 0, None]


def test_rows_that_come_beside_may_have_new_texts_and_larger_numbers(tmp_path: Path) -> None:
    held = Columns(1 << 20)
    found = kept(held, a_file(tmp_path, "1"))
    rows = pa.table({"hour": [1], "customer_id": ["new"], "cdn": ["own"], "watch_ms": [BIG]})

    whole = held.widened(found, rows).table

    assert whole["watch_ms"].to_pylist() == [1, 2, 3, 4, BIG]
    assert found.values["cdn"].place("own") == whole["cdn"].to_pylist()[-1]


def test_the_few_by_which_views_are_counted_come_first_in_every_column(tmp_path: Path) -> None:
    held = Columns(1 << 20)
    path = a_file(tmp_path, "1", first_append_ms=[OTHERS[0], FEW[1], None, FEW[2]])

    kept(held, path, fields=("cdn",))
    found = kept(held, path, fields=(*FIELDS, SAMPLED_BY))

    assert found.table["watch_ms"].to_pylist() == [2, 4, 1, 3]
    assert texts(found, "cdn") == [None, "fastly", "fastly", "akamai"]
    assert found.few is not None
    assert found.few["watch_ms"].to_pylist() == [2, 4]
    assert kept(held, path).few is None


def test_the_few_of_rows_that_come_beside_are_among_the_few(tmp_path: Path) -> None:
    held = Columns(1 << 20)
    path = a_file(tmp_path, "1", first_append_ms=[OTHERS[0], FEW[1], None, FEW[2]])
    rows = pa.table(
        {"hour": [1] * 3, "customer_id": ["new"] * 3, "cdn": ["own"] * 3, "watch_ms": [BIG, 6, 7]}
        | {SAMPLED_BY: pa.array([FEW[3], OTHERS[1], None], pa.int64())}
    )

    whole = held.widened(kept(held, path, fields=(*FIELDS, SAMPLED_BY)), rows)

    assert whole.table["watch_ms"].to_pylist() == [2, 4, 1, 3, BIG, 6, 7]
    assert whole.few is not None
    assert whole.few["watch_ms"].to_pylist() == [2, 4, BIG]


def test_what_was_asked_for_longest_ago_goes_first_and_the_bytes_stay_in_their_bounds(tmp_path: Path) -> None:
    paths = [a_file(tmp_path, str(number)) for number in range(8)]
    held = Columns(200)

    for path in paths:
        for name, missing in held.missing({path: 4}, FIELDS).items():
            held.read(name, missing)
        assert held.bytes <= 200
    assert held.find([paths[0]], FIELDS) is None
    assert held.find([paths[-1]], FIELDS) is not None

    held.leave([])
    assert (held.bytes, held.find(paths, FIELDS)) == (0, None)


def test_a_question_for_which_there_is_no_room_reads_nothing(tmp_path: Path) -> None:
    path = a_file(tmp_path, "1")
    # Two texts of 16 bits, two numbers of 32 bits, and a bit each that says whether there is one.
    room = 1_000 * (2 * 17 + 2 * 33) // 8

    assert Columns(room - 1).missing({path: 1_000}, FIELDS) == {}
    assert Columns(room).missing({path: 1_000}, FIELDS) == {path: ["hour", "customer_id", *FIELDS]}


def test_a_text_with_too_many_values_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "VALUES_MAX", 2)
    path = a_file(tmp_path, "1", cdn=["1", "2", "3", "4"])
    held = Columns(1 << 20)

    held.read(path, held.missing({path: 4}, FIELDS)[path])

    assert held.find([path], FIELDS) is None
    assert held.missing({path: 4}, FIELDS) == {}
    assert kept(held, path, fields=("watch_ms",)).table["watch_ms"].to_pylist() == [1, 2, 3, 4]


def test_values_beyond_the_bound_are_refused_and_do_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "VALUES_MAX", 2)
    values = Values()

    with pytest.raises(TooManyValues):
        values.coded(pa.array(["1", "2", "3"]))

    assert values.table().num_rows == 0
