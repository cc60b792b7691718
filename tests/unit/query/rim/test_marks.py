"""Cohorts marked in columns in memory: the bits that statements over files have."""

import itertools
import random
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from services.query.core.dimensions import DIMENSIONS
from services.query.core.filters import Filter, sql_of, whole_number
from services.query.rim.columns import Values
from services.query.rim.marks import COHORTS_MAX, in_some, masks

CHANCE = random.Random(7)
ROWS = 500
TEXTS: Mapping[str, list[str | None]] = {
    "cdn": ["own", "fastly", None],
    "country": ["DE", "", None],
    "video_title": ["ä" * 120, "ä" * 100, "zero\0", None],
    "os": [None],
}
COLUMNS: dict[str, list[Any]] = {name: CHANCE.choices(values, k=ROWS) for name, values in TEXTS.items()} | {
    "asn": CHANCE.choices([0, 3320, 12322, 1 << 60, None], k=ROWS),
    "playback_failed": CHANCE.choices([True, False, None], k=ROWS),
}
#: Values that views have, unknown ones, and some that no view has.
VALUES: Mapping[str, list[str | None]] = {
    "cdn": ["own", "fastly", None, "nobody's"],
    "country": ["DE", "", None],
    "asn": ["3320", "0", None, "03320", "1", "x", "9" * 12, str(1 << 60), "9" * 19, "9" * 30],
    "video_title": ["ä" * 100, "zero\ufffd", "ä" * 120, None],
    "os": ["iOS", None],
    "playback_failed": ["true", "false", None, "TRUE"],
}


class Coded:
    """`filters.Codes` of the texts above."""

    def __init__(self) -> None:
        self.values = {name: Values() for name in TEXTS}
        self.columns = {name: self.values[name].coded(pa.array(COLUMNS[name], pa.string())) for name in TEXTS}

    def place(self, field: str, value: str) -> int | None:
        return self.values[field].place(value)

    def count(self, field: str) -> int:
        return len(self.values[field])


def one_of(name: str, value: str | None) -> Filter:
    return Filter(dimension=name, values=(value,))


def cohorts() -> list[Filter]:
    single = [one_of(name, value) for name, values in VALUES.items() for value in values]
    several: list[tuple[Filter, ...]] = []
    for size, count in ((3, 3), (4, 1), (2, COHORTS_MAX - len(single) - 4)):
        combined = itertools.combinations(single, size)
        several += CHANCE.sample([one for one in combined if len({part.dimension for part in one}) == size], count)
    return single + [Filter(all_of=one) for one in several]


@pytest.mark.parametrize("lengths", [[ROWS], [1, 0, 199, 300]])
def test_a_row_has_the_bit_of_a_cohort_where_its_filter_holds(lengths: list[int]) -> None:
    codes, rows = Coded(), pa.table(COLUMNS)
    whole = pa.table(
        {**codes.columns, "asn": pa.array(COLUMNS["asn"], pa.int64()), "playback_failed": rows["playback_failed"]}
    )
    starts = itertools.accumulate(lengths, initial=0)
    chunks = pa.concat_tables([whole.slice(start, length) for start, length in zip(starts, lengths, strict=False)])
    wanted = cohorts()

    found = masks(chunks, wanted, codes).to_pylist()

    assert len(wanted) == COHORTS_MAX
    for number, cohort in enumerate(wanted):
        condition, parameters = sql_of(cohort, lambda one: one.sql)
        said = duckdb.execute(f"SELECT coalesce({condition}, false) FROM rows", parameters).fetchall()
        assert [bool(mask >> number & 1) for mask in found] == [holds for (holds,) in said], cohort
    assert len(set(found)) > 20


@pytest.mark.parametrize("count", [0, 1, 8, 9, 16, 17, COHORTS_MAX])
def test_a_mask_is_as_wide_as_its_cohorts_need_and_says_who_is_in_some(count: int) -> None:
    codes = Coded()
    whole = pa.table(
        {**codes.columns, "asn": pa.array(COLUMNS["asn"], pa.int64()), "playback_failed": COLUMNS["playback_failed"]}
    )
    chunks = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 0), whole.slice(7)])
    wanted = cohorts()
    CHANCE.shuffle(wanted)

    found = masks(chunks, wanted[:count], codes)

    assert found.type.bit_width == (8 if count <= 8 else 16 if count <= 16 else 32)
    bits = (1 << count) - 1
    by_all = masks(chunks, wanted, codes).to_pylist()
    assert found.to_pylist() == [mask & bits for mask in by_all]
    assert in_some(found).tolist() == [place for place, mask in enumerate(by_all) if mask & bits]


def test_numbers_are_compared_as_numbers_where_texts_have_numbers_too() -> None:
    one = Filter(dimension="asn", values=("3320", "03320", None))

    assert sql_of(one, lambda named: named.sql, Coded()) == ("(asn IS NULL OR asn IN (?))", [3320])
    assert sql_of(one_of("asn", "x"), lambda named: named.sql, Coded()) == ("false", [])
    assert sql_of(one, lambda named: named.sql) == (
        f"({DIMENSIONS['asn'].sql} IS NULL OR {DIMENSIONS['asn'].sql} IN (?, ?))",
        ["3320", "03320"],
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *((str(number), number) for number in (0, -7, 64_512, 2**63 - 1, -(2**63))),
        *((text, None) for text in ("-0", "007", "1.0", " 1", "", "٣", str(2**63), str(10**18 * 100))),
    ],
)
def test_a_text_is_a_number_where_a_statement_writes_it_so(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_texts_among_some_rows_are_those_of_their_numbers_alone() -> None:
    values = Values()
    values.coded(pa.array([f"value {number}" for number in range(1_000)]))
    given = ["value 7", None, "value 999", "value 7", None]

    found = values.among(pa.chunked_array([values.coded(pa.array(given[:2])), values.coded(pa.array(given[2:]))]))

    assert found.to_pylist() == given
    assert sorted(found.chunk(0).dictionary.to_pylist()) == ["value 7", "value 999"]
    assert values.among(pa.chunked_array([], pa.uint16())).to_pylist() == []
