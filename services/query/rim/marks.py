"""Which of some cohorts each row of columns in memory is in. Comparing numbers by numpy takes a fifth of DuckDB's time."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from services.query.core.dimensions import Dimension, dimension
from services.query.core.filters import Codes, Filter, stored, whole_number

Flags = NDArray[np.bool_]
#: A number that no text has.
_NO_TEXT: Final = np.iinfo(np.uint16).max
#: Bits of a mask.
COHORTS_MAX: Final = 32
#: Of so many bytes.
_TYPES: Final = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32()}
assert 8 * max(_TYPES) == COHORTS_MAX
#: Some 40 MB of flags. Fewer rows take more calls, each of which waits for the interpreter's lock where two ranges are marked.
_ROWS_AT_ONCE: Final = 1 << 19


def masks(table: pa.Table, cohorts: Sequence[Filter], codes: Codes) -> pa.ChunkedArray:
    """Of each row a bit a cohort, of which there are at most 32. A cohort has a value of one dimension, or (`and`) of several.

    `table` has texts as numbers, as `Columns` keeps them: no viewers and no dimensions of customers' own.
    """
    fields = dict.fromkeys(named.column or named.fields[0] for one in cohorts for named, _ in _conditions(one))
    batches = table.select(list(fields)).to_batches(max_chunksize=_ROWS_AT_ONCE)
    width = _width(len(cohorts))
    return pa.chunked_array([pa.array(_Batch(batch, codes).masks(cohorts, width)) for batch in batches], _TYPES[width])


def _width(cohorts: int) -> int:
    """The bytes of a mask."""
    return next(width for width in _TYPES if cohorts <= 8 * width)


def in_some(found: pa.ChunkedArray) -> NDArray[np.intp]:
    """The places of the rows that are in some cohort, of their masks."""
    # Flags are looked through many at once, numbers are not.
    return np.flatnonzero(np.concatenate([np.zeros(0, bool), *(chunk.to_numpy() != 0 for chunk in found.chunks)]))


class _Batch:
    def __init__(self, batch: pa.RecordBatch, codes: Codes) -> None:
        self._batch = batch
        self._codes = codes
        self._columns: dict[str, NDArray[Any]] = {}
        # Cohorts that are near the line have conditions in common.
        self._found: dict[tuple[str, str | None], Flags] = {}

    def masks(self, cohorts: Sequence[Filter], width: int) -> NDArray[np.unsignedinteger[Any]]:
        """Of each row a bit a cohort."""
        made = np.zeros((self._batch.num_rows, width), np.uint8)
        for first in range(0, len(cohorts), 8):
            # Within a byte, and in place: wider numbers, shifts and new arrays take several times as long.
            bits = np.zeros(self._batch.num_rows, np.uint8)
            for cohort in reversed(cohorts[first : first + 8]):
                bits += bits
                bits |= self._in_all(_conditions(cohort)).view(np.uint8)
            made[:, first // 8] = bits
        return made.view(np.dtype(f"<u{width}")).reshape(-1)

    def _in_all(self, conditions: Sequence[tuple[Dimension, str | None]]) -> Flags:
        first, *others = (self._holds(*condition) for condition in conditions)
        if not others:
            return first
        found = first & others[0]
        for other in others[1:]:
            found &= other
        return found

    def _holds(self, named: Dimension, value: str | None) -> Flags:
        if (named.name, value) not in self._found:
            self._found[named.name, value] = self._compared(named, value)
        return self._found[named.name, value]

    def _compared(self, named: Dimension, value: str | None) -> Flags:
        if named.column:
            place = _NO_TEXT if value is None else self._codes.place(named.column, stored(named, value))
            return self._nobody() if place is None else self._numbers(named.column, _NO_TEXT) == place
        (field,) = named.fields
        if value is None:
            return _nulls(self._batch[field])
        wanted = {"true": 1, "false": 0}.get(value) if named.kind == "flag" else whole_number(value)
        if wanted is None:
            return self._nobody()
        found: Flags = self._numbers(field, 0) == wanted
        return found & ~_nulls(self._batch[field]) if self._batch[field].null_count else found

    def _numbers(self, field: str, of_null: int) -> NDArray[Any]:
        if field not in self._columns:
            column = self._batch[field]
            filled = pc.fill_null(column, pa.scalar(of_null).cast(column.type)) if column.null_count else column
            self._columns[field] = filled.to_numpy(zero_copy_only=False)
        return self._columns[field]

    def _nobody(self) -> Flags:
        return np.zeros(self._batch.num_rows, bool)


def _nulls(column: pa.Array) -> Flags:
    found: Flags = pc.is_null(column).to_numpy(zero_copy_only=False)
    return found


def _conditions(cohort: Filter) -> list[tuple[Dimension, str | None]]:
    found = []
    for part in cohort.all_of or (cohort,):
        assert part.dimension is not None
        assert part.values is not None
        named = dimension(part.dimension)
        assert named is not None
        (value,) = part.values
        found.append((named, value))
    return found
