"""Columns of the warehouse's files in memory, their texts as numbers: what pages ask again and again is decoded once.

A file never changes, so what was read of it stays true; deletion vectors and slices that Postgres owns are what who asks sees to.
Texts are normal (`dimensions.normal`) and share one list of values a field, so a number means the same in every file.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import structlog
from numpy.typing import NDArray

from services.query.core.dimensions import normal_text
from services.query.core.sql.lots import SAMPLED_BY, lots
from services.query.core.sql.statements import TIME_FIELDS
from services.query.rim.hot import kind_of
from shared.statistics.suspects.sampling import FEW_OF

log = structlog.get_logger("services.query")

#: Values of a text that have a number; a field with more, as the name of a viewer, is not kept.
VALUES_MAX: Final = 65_000
_CODE: Final = pa.uint16()
_SMALL: Final = pa.int32()
_HOUR: Final = "hour"


class TooManyValues(RuntimeError):
    """A text has more values than there are numbers."""


class Values:
    """The values of a text in the order in which they were found: the place is the number. It only grows."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._places)

    def place(self, value: str) -> int | None:
        """The number of a value; None where no view has it."""
        return self._places.get(value)

    def coded(self, texts: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Numbers instead of texts, null for null. Raises `TooManyValues`."""
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.unify_dictionaries() if pa.types.is_dictionary(texts.type) else texts
            texts = texts.combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.chunk(0) if texts.num_chunks else pa.array([], pa.string())
        if not pa.types.is_dictionary(texts.type):
            texts = texts.dictionary_encode()
        found = [None if value is None else normal_text(value) for value in texts.dictionary.to_pylist()]
        with self._lock:
            new = [value for value in dict.fromkeys(found) if value is not None and value not in self._places]
            if len(self._places) + len(new) > VALUES_MAX:
                raise TooManyValues
            for value in new:
                self._places[value] = len(self._places)
            numbers = [None if value is None else self._places[value] for value in found]
        return pc.take(pa.array(numbers, _CODE), texts.indices)

    def table(self) -> pa.Table:
        """All of them, as columns `code` and `value`."""
        with self._lock:
            values = list(self._places)
        return pa.table({"code": pa.array(range(len(values)), _CODE), "value": pa.array(values, pa.string())})

    def texts(self, codes: pa.Array) -> pa.Array:
        """The texts of numbers, without a copy of each."""
        return pa.DictionaryArray.from_arrays(codes, self.table()["value"].combine_chunks())

    def among(self, codes: pa.ChunkedArray) -> pa.ChunkedArray:
        """The texts of numbers, encoded by those alone that are among them."""
        with self._lock:
            values = list(self._places)
        numbers = pc.fill_null(codes, len(values)).to_numpy()
        is_there = np.zeros(len(values) + 1, bool)
        is_there[numbers] = True
        (there,) = np.nonzero(is_there[:-1])
        places = np.zeros(is_there.size, np.int32)
        places[there] = np.arange(there.size, dtype=np.int32)
        texts = pa.array([values[number] for number in there], pa.string())
        indices = pa.array(np.take(places, numbers), mask=numbers == len(values))
        return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, texts)])


@dataclass(frozen=True)
class Kept:
    """What is in memory of a question: rows of these files, and the values of its texts."""

    table: pa.Table
    #: Of those the few (`lots.IS_OF_FEW`), with the same columns. None: none of them says which rows these are.
    few: pa.Table | None
    paths: frozenset[str]
    values: Mapping[str, Values]


class Columns:
    """Keeps columns up to a number of bytes, those that were asked for last. Its methods may be called from any thread."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._chunks: OrderedDict[tuple[str, str], pa.Array] = OrderedDict()
        #: Of each file how many rows are the few, which are the first of each of its columns.
        self._few: dict[str, int] = {}
        self._bytes = 0
        self._values: dict[str, Values] = {}
        #: Fields that cannot be kept, and whole numbers that need 64 bits somewhere.
        self._refused: set[str] = set()
        self._wide = set(TIME_FIELDS)

    @property
    def bytes(self) -> int:
        """How many there are."""
        return self._bytes

    def find(self, paths: Sequence[str], fields: Sequence[str]) -> Kept | None:
        """Rows of those files of which all fields are here; None where there are none."""
        names = dict.fromkeys((_HOUR, "customer_id", *fields))
        with self._lock:
            found = [path for path in paths if all((path, name) in self._chunks for name in names)]
            if not found:
                return None
            columns: dict[str, list[pa.Array]] = {name: [] for name in names}
            for name, chunks in columns.items():
                for path in found:
                    self._chunks.move_to_end((path, name))
                    chunks.append(self._chunks[path, name])
            few = [self._few[path] for path in found]
            values = {name: self._values[name] for name in names if name in self._values}
        first = {
            name: pa.chunked_array([chunk.slice(0, count) for chunk, count in zip(chunks, few, strict=True)])
            for name, chunks in columns.items()
        }
        whole = {name: pa.chunked_array(chunks) for name, chunks in columns.items()}
        return Kept(pa.table(whole), pa.table(first) if SAMPLED_BY in names else None, frozenset(found), values)

    def widened(self, kept: Kept, rows: pa.Table) -> Kept:
        """What was found, and beside it other rows as a statement gave them. Raises `TooManyValues`."""
        beside: dict[str, pa.Array | pa.ChunkedArray] = {}
        for name, kind in zip(kept.table.column_names, kept.table.schema.types, strict=True):
            if name in kept.values:
                beside[name] = kept.values[name].coded(rows[name])
                continue
            try:
                beside[name] = rows[name].cast(kind)
            except pa.ArrowInvalid:
                beside[name] = rows[name].cast(pa.int64())
        added = pa.table(beside)
        few = None if kept.few is None else _joined(kept.few, added.take(_few_first(added[SAMPLED_BY])[0]))
        return replace(kept, table=_joined(kept.table, added), few=few)

    def missing(self, files: Mapping[str, int], fields: Sequence[str]) -> dict[str, list[str]]:
        """By path the fields that are not here; nothing where all of them (`files` has rows by path) have no room."""
        names = dict.fromkeys((_HOUR, "customer_id", *fields))
        a_row = sum(map(self._bytes_of, names))
        if self._refused.intersection(names) or sum(files.values()) * a_row > self._bytes_max:
            return {}
        with self._lock:
            wanted = {path: [name for name in names if (path, name) not in self._chunks] for path in files}
        return {path: listed for path, listed in wanted.items() if listed}

    def read(self, path: str, fields: Sequence[str]) -> None:
        """Reads columns of a file. Rows that are marked as deleted in the file itself are left out."""
        footer = pq.read_metadata(path)
        has = set(footer.schema.to_arrow_schema().names)
        texts = [name for name in fields if name in has and _is_text(name)]
        with pq.ParquetFile(path, metadata=footer, read_dictionary=texts) as file:
            wanted = dict.fromkeys((*fields, SAMPLED_BY))
            table = file.read([*(name for name in wanted if name in has), "deleted"], use_threads=False)
        counts = pc.fill_null(pc.invert(table["deleted"]), False)
        if not pc.all(counts).as_py():
            table = table.filter(counts)
        few, others = _few_first(table[SAMPLED_BY] if SAMPLED_BY in has else pa.nulls(table.num_rows, pa.int64()))
        table = table.take(np.concatenate([few, others]))
        for name in fields:
            column = table[name] if name in has else pa.nulls(table.num_rows, _type_of(name))
            try:
                self._put(path, name, self._made(name, column), few.size)
            except TooManyValues:
                self._refuse(name)

    def leave(self, paths: Iterable[str]) -> None:
        """Drops what is of other files than these."""
        wanted = set(paths)
        with self._lock:
            for key in [key for key in self._chunks if key[0] not in wanted]:
                self._bytes -= self._chunks.pop(key).nbytes
            for path in self._few.keys() - wanted:
                del self._few[path]

    def _made(self, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Array:
        if _is_text(name):
            return self._values.setdefault(name, Values()).coded(column)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(whole, pa.ChunkedArray):
            whole = whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
        if not pa.types.is_integer(whole.type) or name in self._wide:
            return whole
        try:
            return whole.cast(_SMALL)
        except pa.ArrowInvalid:
            self._widen(name)
            return whole

    def _widen(self, name: str) -> None:
        with self._lock:
            self._wide.add(name)
            for key in [key for key in self._chunks if key[1] == name]:
                former = self._chunks[key]
                self._chunks[key] = former.cast(pa.int64())
                self._bytes += self._chunks[key].nbytes - former.nbytes

    def _put(self, path: str, name: str, chunk: pa.Array, few: int) -> None:
        with self._lock:
            self._few[path] = few
            if name in self._wide and chunk.type == _SMALL:
                chunk = chunk.cast(pa.int64())
            former = self._chunks.pop((path, name), None)
            self._bytes += chunk.nbytes - (0 if former is None else former.nbytes)
            self._chunks[path, name] = chunk
            while self._bytes > self._bytes_max:
                self._bytes -= self._chunks.popitem(last=False)[1].nbytes

    def _bytes_of(self, name: str) -> float:
        """How much a row takes, in a bit map of nulls too."""
        kind = _CODE if _is_text(name) else _type_of(name)
        if pa.types.is_integer(kind) and not (_is_text(name) or name in self._wide):
            kind = _SMALL
        bits: int = kind.bit_width + 1
        return bits / 8

    def _refuse(self, name: str) -> None:
        log.info("column_not_kept", field=name, values_max=VALUES_MAX)
        with self._lock:
            self._refused.add(name)
            self._values.pop(name, None)
            for key in [key for key in self._chunks if key[1] == name]:
                self._bytes -= self._chunks.pop(key).nbytes


def _few_first(sampled_by: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of the few (`lots.IS_OF_FEW`), and of all others, those without a time too."""
    times = pc.fill_null(sampled_by, 0).to_numpy(zero_copy_only=False)
    is_of_few = (lots(times) % FEW_OF == 0) & pc.is_valid(sampled_by).to_numpy(zero_copy_only=False)
    return np.flatnonzero(is_of_few), np.flatnonzero(~is_of_few)


def _joined(first: pa.Table, second: pa.Table) -> pa.Table:
    """Both, with the wider kind of each number."""
    return pa.concat_tables([first.cast(second.schema), second])


def _is_text(name: str) -> bool:
    return name != _HOUR and (name == "customer_id" or pa.types.is_string(kind_of(name)))


def _type_of(name: str) -> pa.DataType:
    return pa.int64() if name == _HOUR else pa.string() if name == "customer_id" else kind_of(name)
