"""The statements of a breakdown: groups of views, ranked, and what is not listed added up. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from services.query.core.dimensions import Dimension, normal
from services.query.core.filters import Codes
from services.query.core.parts import Part
from services.query.core.question import Question
from services.query.core.sql.statements import (
    OTHER_RANK,
    SKIPPED_RANK,
    UNKNOWN_RANK,
    Statement,
    aggregates,
    bucket_key,
    conditions_of,
    counted_at,
    value_of,
)

#: So many groups are few: each has its percentiles before it is known which are listed.
_FEW: Final = 1_000
#: The same of groups by bucket.
_FEW_IN_BUCKETS: Final = 20_000


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
        f"CASE WHEN {alone} THEN {UNKNOWN_RANK} WHEN {few} OR {ranked} > {question.skipped + question.limit:d}"
        f" THEN {OTHER_RANK} WHEN {ranked} <= {question.skipped:d} THEN {SKIPPED_RANK} ELSE {ranked} END"
    )


def _listed(groups: Sequence[_Group], of: str = "") -> str:
    """The values of a group that is listed; null for what is added up."""
    return ", ".join(
        f"CASE WHEN rank >= {UNKNOWN_RANK} THEN any_value({of}{one.text}) END AS {one.name}" for one in groups
    )


def of_sums(question: Question, relation: str, parts: Sequence[Part], codes: Codes | None = None) -> Statement:
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
        (f", {bucket_key(question.buckets, counted_at(question))} AS bucket", ", bucket")
        if question.buckets
        else ("", "")
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
            SELECT {listed}{bucket}, {aggregates(parts)}
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


def of_views(question: Question, relation: str, parts: Sequence[Part], codes: Codes | None = None) -> Statement:
    """Groups with any aggregates: groups are ranked first, then every view is counted where its group belongs.

    Where there are few groups, all aggregates are made by group and bucket at once, and only views of groups that are not listed
    are counted again. With many that takes longer: most percentiles would be of groups that nobody sees.
    """
    groups = _groups(question, codes)
    names = _names(groups)
    where, parameters = conditions_of(question, codes)
    is_direct = _are_few(question, groups, codes)
    by_bucket, bucket = (", bucket", ("bucket",)) if question.buckets else ("", ())
    key = f", {bucket_key(question.buckets, counted_at(question))} AS bucket" if question.buckets else ""
    of_each = ", ".join(
        f"{one.code if one.values else value_of(question, one.dimension)} AS {one.name}" for one in groups
    )
    # Found views are copied: with no more than what is read of them.
    read = "".join(f", {field}" for field in dict.fromkeys(field for part in parts for field in part.fields))
    # Names and numbers of groups follow from groups: to count them among views would take most of the time.
    counted = f"count(DISTINCT {f'({names})' if len(groups) > 1 else _never_null(groups[0], codes)}) AS groups"
    apart, seen, again, listed = "", "ranked", "true", ""
    of_apart = f"apart JOIN ranked ON {_same(groups, 'apart')}"
    if bucket:
        each = f"{names}, bucket, {aggregates(parts)} FROM found GROUP BY {names}, bucket"
        one_each = each if is_direct else f"DISTINCT {names}, bucket FROM found"
        apart = f"apart AS MATERIALIZED (SELECT {one_each}),"
        seen = f"(SELECT ranked.*, apart.bucket FROM {of_apart})"  # noqa: S608 - names of ours
    if is_direct:
        again = f"rank <= {UNKNOWN_RANK}"
        of, source = ("apart.", of_apart) if bucket else ("", "ranked")
        shown = "".join(f", {of}{name}" for name in (*bucket, *(part.name for part in parts)))
        listed = f"SELECT rank{shown} FROM {source} WHERE NOT ({again}) UNION ALL"  # noqa: S608 - names of ours
    sql = f"""
        WITH found AS MATERIALIZED (SELECT {of_each}{key}{read} FROM {relation} WHERE {where}), {apart}
        ranked AS MATERIALIZED ({_ranked(question, groups, parts if is_direct and not bucket else ())}),
        placed AS (SELECT found.*, rank FROM found JOIN (SELECT * FROM ranked WHERE {again}) AS ranked
            ON {_same(groups, "found")}),
        measured AS ({listed} SELECT rank{by_bucket}, {aggregates(parts)} FROM placed GROUP BY rank{by_bucket}),
        named AS (SELECT rank{by_bucket}, {_listed(groups)}, {counted} FROM {seen} AS seen GROUP BY rank{by_bucket})
        SELECT * FROM named JOIN measured USING (rank{by_bucket})
    """  # noqa: S608
    columns = ("rank", *bucket, *(one.name for one in groups), "groups", *(part.name for part in parts))
    return Statement(sql, tuple(parameters), columns)


def _ranked(question: Question, groups: Sequence[_Group], parts: Sequence[Part]) -> str:
    """The groups of relation `found` with their rank: by their aggregates, or as the answer has it that this one is compared with.

    They have at least these parts.
    """
    names = _names(groups)
    if question.pinned is None:
        parts = tuple(dict.fromkeys((*parts, *question.order_by.parts, *question.parts[:1])))
    of_each = "".join(f", {part.sql} AS {part.name}" for part in parts)
    grouped = _with_texts(f"(SELECT {names}{of_each} FROM found GROUP BY {names})", groups)  # noqa: S608
    if question.pinned is None:
        return f"SELECT *, {_rank(question, groups)} AS rank FROM {grouped} AS g"  # noqa: S608
    matching = " AND ".join(f"g.{one.text} IS NOT DISTINCT FROM p.{one.name}" for one in groups)
    return (
        f"SELECT g.*, coalesce(p.rank, {OTHER_RANK}) AS rank FROM {grouped} AS g"  # noqa: S608
        f" LEFT JOIN pinned AS p ON {matching}"
    )


def _same(groups: Sequence[_Group], of: str) -> str:
    """Whether a row of a relation is of a group of relation `ranked`."""
    return " AND ".join(f"{of}.{one.name} IS NOT DISTINCT FROM ranked.{one.name}" for one in groups)


def _are_few(question: Question, groups: Sequence[_Group], codes: Codes | None) -> bool:
    """Whether there are certainly few groups, by bucket too; unknown values are one more of each dimension."""
    if codes is None or not all(one.values for one in groups):
        return False
    count = math.prod(codes.count(str(one.dimension.column)) + 1 for one in groups)
    return count <= _FEW and (question.buckets is None or count * len(question.buckets.keys) <= _FEW_IN_BUCKETS)


def _never_null(group: _Group, codes: Codes | None) -> str:
    """A group's value, where an unknown one counts as an empty text does."""
    if codes is None or not group.values or group.dimension.column is None:
        return f"coalesce({group.name}, '')"
    empty = codes.place(group.dimension.column, "")
    return f"coalesce({group.name}::INTEGER, {-1 if empty is None else empty:d})"
