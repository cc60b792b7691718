"""Postgres: sums of hours, and hot rows of slices that the warehouse does not have as they are now.

A slice is a customer's hour. Postgres owns the slices that are hot (changed since the finalizer last published them) or dirty
(the finalizer is about to count them again). That holds as far back as hot rows are kept. The warehouse owns all others. There
the two have the same rows, so a question is answered as of one moment of Postgres.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
import psycopg
import pyarrow as pa
from psycopg.rows import tuple_row

from services.query.core import fields
from services.query.core.question import Question
from services.query.core.sql import statements, sums
from services.rim.database.pool import Asks
from services.rim.database.view_rows import COLUMNS
from services.rim.turns.thread_work import until_over
from shared.schemas.view import View

_TYPED: Final = frozenset(COLUMNS) - {"document"}
_KINDS: Final = {
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    list: pa.list_(pa.list_(pa.int64())),
}
_COVERAGE: Final = """
    SELECT c.is_whole, c.since_hour, (extract(epoch FROM p.published_at) * 1000)::bigint
    FROM serving.coverage AS c LEFT JOIN serving.published AS p ON true
"""
#: From which hour on sums of these customers are kept. Of all at once, those who have less kept do not count: the views
#: of all would be read for them.
_SUMS_FROM: Final = """
    SELECT max(f.hour) FROM serving.sums_from AS f WHERE f.customer_id = '' OR f.customer_id = ANY(%(customers)s::text[])
"""
_OWNED: Final = """
    SELECT o.hour, o.customer_id, max(o.changed_at) FROM (
        SELECT h.hour, h.customer_id, h.changed_at FROM serving.hot_slices AS h
        UNION ALL SELECT d.hour, d.customer_id, NULL FROM finalizer.dirty_slices AS d
    ) AS o
    WHERE o.hour >= greatest(%(first)s, %(since)s) AND o.hour < %(end)s
      AND NOT (o.hour >= %(unread_first)s AND o.hour < %(unread_end)s)
      AND (%(customers)s::text[] IS NULL OR o.customer_id = ANY(%(customers)s)) AND o.customer_id <> ALL(%(but)s)
    GROUP BY o.hour, o.customer_id ORDER BY o.hour, o.customer_id
"""
#: Rows of owned slices; and of hours before hot rows are kept what is still there, which is newer than the warehouse or the same.
_OF_ROWS: Final = """
    FROM serving.views AS v
    WHERE (
        (v.hour, v.customer_id) IN (SELECT * FROM unnest(%(hours)s::bigint[], %(owners)s::text[]))
        OR v.hour >= %(first)s AND v.hour < least(%(end)s, %(since)s)
           AND (%(customers)s::text[] IS NULL OR v.customer_id = ANY(%(customers)s)) AND v.customer_id <> ALL(%(but)s)
    )
"""
#: Of these the warehouse may have an older revision in an earlier hour: a view's day is that of its first beacon.
_MOVED: Final = f"SELECT v.customer_id, v.view_id, v.day {_OF_ROWS} AND v.day <= %(since)s / 24 + 1"
#: `size` is of what is read of a row besides its columns. Postgres knows it without reading that.
_COUNT: Final = f"""
    SELECT count(*), coalesce(sum(size), 0)::bigint
    FROM (SELECT CASE WHEN %(has_documents)s THEN octet_length(v.document) ELSE 0 END AS size {_OF_ROWS} AND NOT v.deleted
          LIMIT %(rows_max)s) AS counted
"""  # noqa: S608 - SQL of ours
#: Whole rows, as JSON, that one question reads: more of them cannot be read and decoded within its time.
DOCUMENTS_BYTES_MAX: Final = 256 * 1024 * 1024
#: Rows that are in memory as Postgres gave them, and decoded on a thread.
_ROWS_AT_ONCE: Final = 2_000


@dataclass(frozen=True)
class HotRows:
    """What Postgres owns of a question, at one moment."""

    #: Changes when its hot hours do.
    identity: str
    published_ms: int | None
    #: Table `hot` of the question's statements: its rows.
    rows: pa.Table
    #: Tables `owned` and `moved`: what of the warehouse does not count. None: nothing.
    owned: pa.Table | None
    moved: pa.Table | None
    #: The hour from which on hot rows are kept.
    since_hour: int = 0
    #: Whether there are too many, or too large ones: then none is here, and all are the warehouse's.
    is_left_out: bool = False
    #: Whether the answer is known already, so that no rows were read.
    is_known: bool = False


class HotDatabase:
    """Questions to Postgres, each in one snapshot."""

    def __init__(self, postgres: Asks, rows_max: int) -> None:
        self._postgres = postgres
        self._rows_max = rows_max

    async def sums(self, question: Question) -> tuple[pa.Table, int | None] | None:
        """Table `sums` of a question, and when sums were last brought up to date; None where it begins before sums are kept."""
        sql, parameters = sums.statement(question)

        async def read(connection: psycopg.AsyncConnection) -> tuple[list[Any], int | None] | None:
            async with connection.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(_SUMS_FROM, {"customers": question.customers.listed})
                (from_hour,) = await cursor.fetchone() or (None,)
                if from_hour is not None and question.range.first_hour < from_hour:
                    return None
                await cursor.execute(_COVERAGE)
                _, _, published_ms = await cursor.fetchone() or (False, None, None)
                await cursor.execute(sql, parameters)
                return await cursor.fetchall(), published_ms

        found = await self._postgres.ask(read)
        if found is None:
            return None
        rows, published_ms = found
        return _table(rows, {name: _kind_of_sum(name) for name in sums.columns_of(question)}), published_ms

    async def rows(self, question: Question, is_known: Callable[[str], bool]) -> HotRows:
        """The hot rows of a question; `is_known` says by their identity whether they are needed."""

        async def read(connection: psycopg.AsyncConnection) -> HotRows:
            async with connection.cursor(row_factory=tuple_row) as cursor:
                return await self._read(cursor, question, is_known)

        return await self._postgres.ask(read)

    async def _read(
        self, cursor: psycopg.AsyncCursor[Any], question: Question, is_known: Callable[[str], bool]
    ) -> HotRows:
        none = _table([], _kinds(question))
        await cursor.execute(_COVERAGE)
        is_whole, since_hour, published_ms = await cursor.fetchone() or (False, None, None)
        if not is_whole or since_hour is None:
            return HotRows("none", published_ms, none, None, None)
        within: dict[str, Any] = {
            "first": question.range.first_hour,
            "end": question.range.end_hour,
            "unread_first": question.unread.first_hour if question.unread else 0,
            "unread_end": question.unread.end_hour if question.unread else 0,
            "since": since_hour,
            "customers": question.customers.listed,
            "but": list(question.customers.but),
            "rows_max": self._rows_max + 1,
            "has_documents": _Wanted.of(question).has_documents,
        }
        await cursor.execute(_OWNED, within)
        slices = await cursor.fetchall()
        within |= {"hours": [one[0] for one in slices], "owners": [one[1] for one in slices]}
        identity = hashlib.sha256(repr((since_hour, slices)).encode()).hexdigest()
        if is_known(identity):
            return HotRows(identity, published_ms, none, None, None, since_hour, is_known=True)
        if not slices and question.range.first_hour >= since_hour:
            return HotRows(identity, published_ms, none, None, None, since_hour)
        await cursor.execute(_COUNT, within)
        count, size = await cursor.fetchone() or (0, 0)
        if count > self._rows_max or size > DOCUMENTS_BYTES_MAX:
            return HotRows(identity, published_ms, none, None, None, since_hour, is_left_out=True)
        moved = None
        if question.range.first_hour < since_hour:
            await cursor.execute(_MOVED, within)
            keys = await cursor.fetchall()
            moved = (
                _table(keys, {"customer_id": pa.string(), "view_id": pa.string(), "day": pa.int64()}) if keys else None
            )
        rows = await self._views(cursor, question, within)
        owned = (
            _table([one[:2] for one in slices], {"hour": pa.int64(), "customer_id": pa.string()}) if slices else None
        )
        return HotRows(identity, published_ms, rows, owned, moved, since_hour)

    async def _views(self, cursor: psycopg.AsyncCursor[Any], question: Question, within: dict[str, Any]) -> pa.Table:
        wanted = _Wanted.of(question)
        listed = ", ".join(f"v.{name}" for name in wanted.names)
        parts = []
        # Read from the server as they are wanted: all of them at once may be a gigabyte.
        async with cursor.connection.cursor("hot", row_factory=tuple_row) as rows:
            await rows.execute(f"SELECT {listed} {_OF_ROWS} AND NOT v.deleted", within)
            while found := await rows.fetchmany(_ROWS_AT_ONCE):
                # Seconds of CPU for many: others are answered meanwhile.
                parts.append(await until_over(_made, question, wanted, found))
        return pa.concat_tables([_table([], _kinds(question)), *parts])


@dataclass(frozen=True)
class _Wanted:
    """What of a hot row a question reads: columns, and fields of the whole row that are none."""

    typed: tuple[str, ...]
    others: tuple[str, ...]
    keys: tuple[str, ...]

    @staticmethod
    def of(question: Question) -> "_Wanted":
        wanted = statements.fields_of(question)
        return _Wanted(
            tuple(field for field in wanted if field in _TYPED),
            tuple(field for field in wanted if field not in _TYPED),
            statements.keys_of(question),
        )

    @property
    def has_documents(self) -> bool:
        """Whether whole rows are read."""
        return bool(self.others or self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of Postgres."""
        return ("hour", "customer_id", *self.typed, *(("document",) if self.has_documents else ()))


def _made(question: Question, wanted: _Wanted, found: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows as Postgres gives them, at least one, as rows of table `hot`."""
    columns = dict(zip(wanted.names, map(list, zip(*found, strict=True)), strict=True))
    if wanted.has_documents:
        documents = _documents(wanted.others, bool(wanted.keys))
        decoded = [documents.decode(text) for text in columns.pop("document")]
        for field in wanted.others:
            columns[field] = [getattr(one, field) for one in decoded]
        for number, key in enumerate(wanted.keys):
            columns[f"custom_{number}"] = [one.custom.get(key) for one in decoded]
    return pa.table({name: pa.array(columns[name], kind) for name, kind in _kinds(question).items()})


def _table(rows: Sequence[Sequence[Any]], kinds: dict[str, pa.DataType]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)})


def _kinds(question: Question) -> dict[str, pa.DataType]:
    """The types of table `hot`, by column."""
    kinds = {"hour": pa.int64(), "customer_id": pa.string(), **{f: kind_of(f) for f in statements.fields_of(question)}}
    return kinds | {f"custom_{number}": pa.string() for number in range(len(statements.keys_of(question)))}


def _kind_of_sum(name: str) -> pa.DataType:
    return {"hour": pa.int64(), "customer_id": pa.string(), "source": pa.string()}.get(name, pa.decimal128(38, 0))


@cache
def kind_of(field: str) -> pa.DataType:
    """The type of a view's field."""
    kind = fields.kind_of(field)
    assert kind is not None, field
    return _KINDS[kind]


@cache
def _documents(fields: tuple[str, ...], has_custom: bool) -> msgspec.json.Decoder[Any]:
    """Reads these fields of a view's whole row, and no others."""
    known = {field.name: field for field in msgspec.structs.fields(View)}
    wanted = [known[name] for name in (*fields, *(("custom",) if has_custom else ()))]
    listed = [
        (
            field.name,
            field.type,
            msgspec.field(default_factory=field.default_factory)
            if field.default_factory is not msgspec.NODEFAULT
            else msgspec.field(default=field.default),
        )
        if not field.required
        else (field.name, field.type)
        for field in wanted
    ]
    return msgspec.json.Decoder(msgspec.defstruct("Wanted", listed, kw_only=True))
