"""The statements that DuckDB answers from views. Names come from the registries; every value of a client is a placeholder.

Views come from relation `views`: files of the warehouse and hot rows together (`relation`). Over it stand the conditions of the
question, its groups and its aggregates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from services.query.core import filters
from services.query.core.calendar import HOUR_MS, WIDTHS_MS, Buckets
from services.query.core.dimensions import Dimension, normal
from services.query.core.filters import Codes
from services.query.core.metrics import Part
from services.query.core.question import Question
from shared.measures import COUNTED_MS
from shared.statistics.histogram import BUCKET_OF_ZERO

#: What `COUNTED_MS` reads.
TIME_FIELDS: Final = ("view_end_ms", "last_append_ms", "first_append_ms")
#: The log of the ratio of a bucket's bounds: `shared.statistics.histogram`, as the triggers of `serving.views` have it.
_LOG: Final = "0.01980262729617973"
#: The rank of what is added up.
OTHER_RANK: Final = -1
UNKNOWN_RANK: Final = 0


@dataclass(frozen=True)
class Statement:
    """SQL and the values of its placeholders, in their order."""

    sql: str
    parameters: tuple[Any, ...]
    #: The columns of its rows.
    columns: tuple[str, ...]


def fields_of(question: Question) -> tuple[str, ...]:
    """The fields of a view that the question reads, without those that every view is found by."""
    wanted = [field for part in question.parts for field in part.fields]
    wanted += [field for dimension in question.dimensions for field in dimension.fields if dimension.key is None]
    wanted += [question.field] if question.field else []
    wanted += [*question.fields, *(filters.numbers_of(question.filter) if question.filter else ())]
    # Suspects are sought in a sample by a time.
    wanted += () if _is_of_hours(question) and question.shape != "suspects" else TIME_FIELDS
    return tuple(dict.fromkeys(field for field in wanted if field != "customer_id"))


def keys_of(question: Question) -> tuple[str, ...]:
    """The names of custom dimensions that the question reads: `custom_0`, `custom_1` … are their values."""
    return tuple(dimension.key for dimension in question.dimensions if dimension.key is not None)


def columns_of(question: Question) -> tuple[str, ...]:
    """The columns of relation `views`."""
    return (
        "hour",
        "customer_id",
        *fields_of(question),
        *(f"custom_{number}" for number in range(len(keys_of(question)))),
    )


def answering(question: Question, codes: Codes | None = None) -> Statement:
    """The statement over relation `views` that answers a question. With `codes`, it is one of `sql.coded`."""
    if question.shape == "distribution":
        return _distribution(question, codes)
    if not question.by:
        return _ungrouped(question, "views", question.parts, codes)
    if all(part.is_additive for part in question.parts):
        return _ranked_sums(question, "views", question.parts, codes)
    return _ranked(question, "views", question.parts, codes)


def adding_up(question: Question) -> Statement:
    """The same over relation `sums`, whose rows are parts already added up (`sums.statement`)."""
    parts = tuple(replace(part, sql=f"coalesce(sum({part.name}), 0)") for part in question.parts)
    if not question.by:
        return _ungrouped(question, "sums", parts)
    return _ranked_sums(question, "sums", parts)


def _is_of_hours(question: Question) -> bool:
    return question.range.is_of_hours and (question.buckets is None or question.buckets.is_of_hours)


def _at(question: Question) -> str:
    """When a view counts, as exactly as the question wants it."""
    return f"(hour * {HOUR_MS})" if _is_of_hours(question) else f"({COUNTED_MS})"


def value_of(question: Question, dimension: Dimension) -> str:
    """A dimension of a row of relation `views`."""
    if dimension.key is None:
        return dimension.sql
    return normal(f"custom_{keys_of(question).index(dimension.key)}")


def conditions_of(question: Question, codes: Codes | None = None) -> tuple[str, list[Any]]:
    """What holds of the views of relation `views` that a question is about, and its parameters."""
    conditions, parameters = ["true"], []
    if not question.range.is_of_hours:
        conditions.append(f"{_at(question)} >= ? AND {_at(question)} < ?")
        parameters += [question.range.from_ms, question.range.to_ms]
    if question.filter is not None:
        condition, values = filters.sql_of(question.filter, lambda dimension: value_of(question, dimension), codes)
        conditions.append(condition)
        parameters += values
    return " AND ".join(conditions), parameters


def bucket_key(buckets: Buckets, at: str) -> str:
    """What names the bucket of a view, of the numbers `buckets.keys`. All numbers in it are ours."""
    *later, first = reversed(buckets.offsets)
    whens = " ".join(f"WHEN {at} >= {one.from_ms:d} THEN {one.offset_ms:d}" for one in later)
    local = f"({at} + {f'CASE {whens} ELSE {first.offset_ms:d} END' if whens else f'{first.offset_ms:d}'})"
    if buckets.bucket in WIDTHS_MS:
        return f"{local} // {WIDTHS_MS[buckets.bucket]:d}"
    day = f"({local} // 86400000)"
    if buckets.bucket == "day":
        return day
    if buckets.bucket == "week":
        return f"({day} + 3) // 7"
    date = f"(DATE '1970-01-01' + CAST({day} AS integer))"
    return f"(year({date}) * 12 + month({date}) - 1)"


def _aggregates(parts: Sequence[Part]) -> str:
    return ", ".join(f"{part.sql} AS {part.name}" for part in parts)


def _ungrouped(question: Question, relation: str, parts: Sequence[Part], codes: Codes | None = None) -> Statement:
    where, parameters = conditions_of(question, codes)
    names = tuple(part.name for part in parts)
    if question.buckets is None:
        return Statement(
            f"SELECT {_aggregates(parts)} FROM {relation} WHERE {where}",  # noqa: S608 - names of ours
            tuple(parameters),
            names,
        )
    key = bucket_key(question.buckets, _at(question))
    return Statement(
        f"SELECT {key} AS bucket, {_aggregates(parts)} FROM {relation} WHERE {where} GROUP BY bucket",  # noqa: S608
        tuple(parameters),
        ("bucket", *names),
    )


@dataclass(frozen=True)
class _Group:
    """A dimension of a breakdown: column `name` is grouped by, column `text` is its value."""

    dimension: Dimension
    name: str
    #: The table of the texts of its numbers; None where the value is a text itself.
    values: str | None

    @property
    def text(self) -> str:
        return f"text_{self.name}" if self.values else self.name

    def stored(self, question: Question) -> str:
        """What views are grouped by: of most texts what is stored, so that it is made normal once a group."""
        return self.dimension.column or value_of(question, self.dimension) if not self.values else self.code

    @property
    def code(self) -> str:
        return f"code_{self.dimension.column}"


def _groups(question: Question, codes: Codes | None) -> list[_Group]:
    return [
        _Group(one, f"d{number}", f"values_{one.column}" if codes is not None and one.column else None)
        for number, one in enumerate(question.by)
    ]


def _with_texts(relation: str, groups: Sequence[_Group]) -> str:
    """The groups of a relation, with the texts of their numbers as columns of their own."""
    coded = [one for one in groups if one.values]
    texts = "".join(f", {one.values}_{one.name}.value AS {one.text}" for one in coded)
    joined = " ".join(
        f"LEFT JOIN {one.values} AS {one.values}_{one.name} ON {one.values}_{one.name}.code = a.{one.name}"
        for one in coded
    )
    return f"(SELECT a.*{texts} FROM {relation} AS a {joined})"  # noqa: S608 - names of ours


def _rank(question: Question, groups: Sequence[_Group]) -> str:
    """The rank of a group by its aggregates: 1 is first; unknown values of one dimension have a place of their own."""
    direction = "ASC" if question.is_ascending else "DESC"
    # Equal groups have an order too, so that an answer is always the same.
    names = ", ".join(f"{one.text} NULLS FIRST" for one in groups)
    order = f"({question.order_by.sql}) {direction} NULLS LAST, views DESC, {names}"
    few = f"views < {question.views_min:d}"
    alone = f"{groups[0].text} IS NULL" if len(groups) == 1 else "false"
    ranked = f"row_number() OVER (PARTITION BY {alone}, {few} ORDER BY {order})"
    return (
        f"CASE WHEN {alone} THEN {UNKNOWN_RANK} WHEN {few} OR {ranked} > {question.limit:d} THEN {OTHER_RANK}"
        f" ELSE {ranked} END"
    )


def _listed(groups: Sequence[_Group], of: str = "") -> str:
    """The values of a group that is listed; null for what is added up."""
    return ", ".join(
        f"CASE WHEN rank <> {OTHER_RANK} THEN any_value({of}{one.text}) END AS {one.name}" for one in groups
    )


def _ranked_sums(question: Question, relation: str, parts: Sequence[Part], codes: Codes | None = None) -> Statement:
    """Groups whose aggregates add up: one pass over views, the rest over groups.

    Views are grouped by what is stored: a text is cut once a group, not once a view.
    """
    where, parameters = conditions_of(question, codes)
    groups = _groups(question, codes)
    named = [replace(one, values=None) for one in groups]
    stored = ", ".join(f"{one.stored(question)} AS {one.name}" for one in groups)
    shown = ", ".join(
        f"{one.text if one.values or not one.dimension.column else normal(one.name)} AS {one.name}" for one in groups
    )
    listed, sums = _names(groups), ", ".join(f"sum({part.name}) AS {part.name}" for part in parts)
    partial = ", ".join(part.name for part in parts)
    key, bucket = (
        (f", {bucket_key(question.buckets, _at(question))} AS bucket", ", bucket") if question.buckets else ("", "")
    )
    # Of many groups a join is dear: without buckets each is there once, with its rank.
    is_joined = bool(bucket) or question.pinned is not None
    end = f"""
        ranked AS (SELECT *, {_rank(question, named)} AS rank FROM grouped)
        SELECT rank, {_listed(named)}, count(*) AS groups, {sums} FROM ranked GROUP BY rank
    """  # noqa: S608
    if is_joined:
        same = " AND ".join(f"g.{one.name} IS NOT DISTINCT FROM r.{one.name}" for one in groups)
        end = f"""
            whole AS (SELECT {listed}, {sums} FROM grouped GROUP BY {listed}), ranked AS ({_placed(question, named)})
            SELECT r.rank{bucket}, {_listed(named, "g.")}, count(DISTINCT {_distinct(named, "g.")}) AS groups,
                   {", ".join(f"sum(g.{part.name}) AS {part.name}" for part in parts)}
            FROM grouped AS g JOIN ranked AS r ON {same} GROUP BY r.rank{bucket}
        """  # noqa: S608
    sql = f"""
        WITH apart AS (
            SELECT {listed}{bucket}, {_aggregates(parts)}
            FROM (SELECT *, {stored}{key} FROM {relation} WHERE {where}) AS found GROUP BY {listed}{bucket}
        ), grouped AS {"MATERIALIZED" if is_joined else ""} (
            SELECT {listed}{bucket}, {sums}
            FROM (SELECT {shown}{bucket}, {partial} FROM {_with_texts("apart", groups)} AS texts) AS shown
            GROUP BY {listed}{bucket}
        ), {end}
    """  # noqa: S608 - names of ours
    columns = ("rank", *(("bucket",) if bucket else ()), *(one.name for one in groups), "groups")
    return Statement(sql, tuple(parameters), (*columns, *(part.name for part in parts)))


def _placed(question: Question, groups: Sequence[_Group]) -> str:
    """Each group of `whole` with its rank: by its sums, or as the answer has it that this one is compared with."""
    if question.pinned is None:
        return f"SELECT {_names(groups)}, {_rank(question, groups)} AS rank FROM whole"  # noqa: S608 - names of ours
    listed = ", ".join(f"w.{one.name}" for one in groups)
    matching = " AND ".join(f"w.{one.name} IS NOT DISTINCT FROM p.{one.name}" for one in groups)
    return (
        f"SELECT {listed}, coalesce(p.rank, {OTHER_RANK}) AS rank FROM whole AS w LEFT JOIN pinned AS p ON {matching}"  # noqa: S608
    )


def _distinct(groups: Sequence[_Group], of: str = "") -> str:
    """What is counted where groups are added up: an unknown value of one dimension counts as an empty text does."""
    if len(groups) > 1:
        return f"({', '.join(of + one.name for one in groups)})"
    return f"coalesce({of}{groups[0].name}, '')"


def _names(groups: Sequence[_Group]) -> str:
    return ", ".join(one.name for one in groups)


def _ranked(question: Question, relation: str, parts: Sequence[Part], codes: Codes | None = None) -> Statement:
    """Any aggregates: groups are ranked first, then every view is counted where its group belongs."""
    groups = _groups(question, codes)
    names = _names(groups)
    where, parameters = conditions_of(question, codes)
    ranking = {part.name for part in question.order_by.parts} | {question.parts[0].name}
    own = [part for part in parts if part.name in ranking]
    key = f", {bucket_key(question.buckets, _at(question))} AS bucket" if question.buckets else ""
    of_views = ", ".join(
        f"{one.code if one.values else value_of(question, one.dimension)} AS {one.name}" for one in groups
    )
    grouped = _with_texts(f"(SELECT {names}, {_aggregates(own)} FROM found GROUP BY {names})", groups)  # noqa: S608
    ranked = f"SELECT *, {_rank(question, groups)} AS rank FROM {grouped} AS g"  # noqa: S608
    if question.pinned is not None:
        rank = f"coalesce(p.rank, {OTHER_RANK})"
        matching = " AND ".join(f"g.{one.text} IS NOT DISTINCT FROM p.{one.name}" for one in groups)
        distinct = _with_texts(f"(SELECT DISTINCT {names} FROM found)", groups)  # noqa: S608
        ranked = f"SELECT g.*, {rank} AS rank FROM {distinct} AS g LEFT JOIN pinned AS p ON {matching}"  # noqa: S608
    same = " AND ".join(f"found.{one.name} IS NOT DISTINCT FROM ranked.{one.name}" for one in groups)
    by_bucket, bucket = (", bucket", ("bucket",)) if question.buckets else ("", ())
    # Found views are copied: with no more than what is read of them.
    read = "".join(f", {field}" for field in dict.fromkeys(field for part in parts for field in part.fields))
    # Names and numbers of groups follow from groups: to count them among views would take most of the time.
    seen = "SELECT * FROM ranked"
    if bucket:
        seen = (
            f"SELECT ranked.*, found.bucket FROM (SELECT DISTINCT {names}, bucket FROM found) AS found"  # noqa: S608
            f" JOIN ranked ON {same}"
        )
    counted = f"count(DISTINCT {f'({names})' if len(groups) > 1 else _never_null(groups[0], codes)}) AS groups"
    sql = f"""
        WITH found AS MATERIALIZED (SELECT {of_views}{key}{read} FROM {relation} WHERE {where}),
        ranked AS MATERIALIZED ({ranked}),
        placed AS (SELECT found.*, ranked.rank FROM found JOIN ranked ON {same}),
        measured AS (SELECT rank{by_bucket}, {_aggregates(parts)} FROM placed GROUP BY rank{by_bucket}),
        seen AS ({seen}),
        named AS (SELECT rank{by_bucket}, {_listed(groups)}, {counted} FROM seen GROUP BY rank{by_bucket})
        SELECT * FROM named JOIN measured USING (rank{by_bucket})
    """  # noqa: S608 - names of ours
    columns = ("rank", *bucket, *(one.name for one in groups), "groups", *(part.name for part in parts))
    return Statement(sql, tuple(parameters), columns)


def _never_null(group: _Group, codes: Codes | None) -> str:
    """A group's value, where an unknown one counts as an empty text does."""
    if codes is None or not group.values or group.dimension.column is None:
        return f"coalesce({group.name}, '')"
    empty = codes.place(group.dimension.column, "")
    return f"coalesce({group.name}::INTEGER, {-1 if empty is None else empty:d})"


def _distribution(question: Question, codes: Codes | None) -> Statement:
    """How many views have a value in each bucket of `shared.statistics.histogram`."""
    where, parameters = conditions_of(question, codes)
    field = question.field
    bucket = (
        f"CASE WHEN {field} > 0 THEN CAST(floor(ln({field}::double) / {_LOG}) AS integer) ELSE {BUCKET_OF_ZERO} END"
    )
    sql = (
        f"SELECT CASE WHEN {field} IS NOT NULL THEN {bucket} END AS bucket, count(*) AS count"  # noqa: S608
        f" FROM views WHERE {where} GROUP BY ALL"
    )
    return Statement(sql, tuple(parameters), ("bucket", "count"))
