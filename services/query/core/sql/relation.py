"""Relation `views` of a question's statements: files of the warehouse and hot rows together, without what counts elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from services.query.core.customers import Customers
from services.query.core.fields import kind_of
from services.query.core.question import Question
from services.query.core.sql.statements import Statement, columns_of, fields_of, keys_of
from shared.measures import COUNTS

_SQL_KINDS: Final = {str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", list: "BIGINT[][]"}


def relation(question: Question, *, scans: Sequence["Scan"], has_hot_rows: bool) -> Statement:
    """Relation `views` as a query: the warehouse's files, then table `hot`, which holds what belongs to the question alone."""
    columns = columns_of(question)
    parts: list[str] = []
    parameters: list[Any] = []
    for scan in scans:
        sql, values = _scanned(question, scan)
        parts.append(sql)
        parameters += values
    if has_hot_rows or not parts:
        parts.append(f"SELECT {', '.join(columns)} FROM hot")  # noqa: S608
    return Statement(" UNION ALL ".join(parts), tuple(parameters), columns)


def of_customers(customers: Customers, column: str = "t.customer_id") -> tuple[str, list[str]]:
    """The condition that a view is one of these customers', and its parameters."""
    if customers.only == ():
        return "false", []
    word, names = ("IN", customers.only) if customers.only is not None else ("NOT IN", customers.but)
    return (f"{column} {word} ({', '.join('?' * len(names))})", list(names)) if names else ("true", [])


@dataclass(frozen=True)
class Scan:
    """Files of the warehouse that are read alike."""

    paths: tuple[str, ...]
    #: Rows in table `removed` (by file and number) are marked as deleted.
    has_removed: bool = False
    #: Slices in table `owned`, and views in table `moved`, are hot: their rows here do not count.
    has_owned: bool = False
    has_moved: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether every row counts that is not marked as deleted in the file itself."""
        return not (self.has_removed or self.has_owned or self.has_moved)


def _scanned(question: Question, scan: Scan) -> tuple[str, list[Any]]:
    listed = ["t.hour", "t.customer_id"]
    listed += [f"t.{field}" for field in fields_of(question)]
    parameters: list[Any] = []
    for number, key in enumerate(keys_of(question)):
        listed.append(f"t.custom[?] AS custom_{number}")
        parameters.append(key)
    parameters.append(list(scan.paths))
    conditions = [COUNTS.replace("deleted", "t.deleted"), "t.hour >= ? AND t.hour < ?"]
    parameters += [question.range.first_hour, question.range.end_hour]
    if question.unread is not None:
        conditions.append("NOT (t.hour >= ? AND t.hour < ?)")
        parameters += [question.unread.first_hour, question.unread.end_hour]
    condition, names = of_customers(question.customers)
    conditions.append(condition)
    parameters += names
    # The day is in the names of folders alone.
    has_day = scan.has_moved or "day" in fields_of(question)
    options = ["union_by_name = true", f"hive_partitioning = {str(has_day).lower()}"]
    if scan.has_removed:
        options += ["filename = true", "file_row_number = true"]
        conditions.append(
            "NOT EXISTS (SELECT 1 FROM removed AS r WHERE r.path = t.filename AND r.number = t.file_row_number)"
        )
    if scan.has_owned:
        conditions.append(
            "NOT EXISTS (SELECT 1 FROM owned AS o WHERE o.hour = t.hour AND o.customer_id = t.customer_id)"
        )
    if scan.has_moved:
        conditions.append(
            "NOT EXISTS (SELECT 1 FROM moved AS m WHERE m.view_id = t.view_id AND m.customer_id = t.customer_id AND m.day = t.day)"
        )
    sql = (
        f"SELECT {', '.join(listed)} FROM (SELECT * FROM read_parquet(?, {', '.join(options)})"  # noqa: S608 - names of ours
        f" UNION ALL BY NAME {_no_rows(question)}) AS t WHERE {' AND '.join(conditions)}"
    )
    return sql, parameters


def _no_rows(question: Question) -> str:
    """No row with all fields of the question: a field that was added after all these files were written is null in theirs."""
    kinds = {field: _SQL_KINDS[kind] for field in fields_of(question) if (kind := kind_of(field))}
    if keys_of(question):
        kinds["custom"] = "MAP(VARCHAR, VARCHAR)"
    return f"SELECT {', '.join(f'NULL::{kind} AS {name}' for name, kind in {'hour': 'BIGINT', **kinds}.items())} WHERE false"
