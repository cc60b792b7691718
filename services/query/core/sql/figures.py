"""The statements that answer a question, from views or from their sums by hour. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from services.query.core.distributions import bucket_sql
from services.query.core.filters import Codes
from services.query.core.parts import Part
from services.query.core.question import Question
from services.query.core.sql import breakdowns
from services.query.core.sql.statements import Statement, aggregates, bucket_key, conditions_of, counted_at


def answering(question: Question, codes: Codes | None = None) -> Statement:
    """The statement over relation `views` that answers a question. With `codes`, it is one of `sql.coded`."""
    if question.shape == "distribution":
        return _distribution(question, codes)
    if not question.by:
        return _ungrouped(question, "views", question.parts, codes)
    if all(part.is_additive for part in question.parts):
        return breakdowns.of_sums(question, "views", question.parts, codes)
    return breakdowns.of_views(question, "views", question.parts, codes)


def adding_up(question: Question) -> Statement:
    """The same over relation `sums`, whose rows are parts already added up (`sums.statement`)."""
    parts = tuple(replace(part, sql=f"coalesce(sum({part.name}), 0)") for part in question.parts)
    if not question.by:
        return _ungrouped(question, "sums", parts)
    return breakdowns.of_sums(question, "sums", parts)


def _ungrouped(question: Question, relation: str, parts: Sequence[Part], codes: Codes | None = None) -> Statement:
    where, parameters = conditions_of(question, codes)
    names = tuple(part.name for part in parts)
    if question.buckets is None:
        return Statement(
            f"SELECT {aggregates(parts)} FROM {relation} WHERE {where}",  # noqa: S608 - names of ours
            tuple(parameters),
            names,
        )
    key = bucket_key(question.buckets, counted_at(question))
    return Statement(
        f"SELECT {key} AS bucket, {aggregates(parts)} FROM {relation} WHERE {where} GROUP BY bucket",  # noqa: S608
        tuple(parameters),
        ("bucket", *names),
    )


def _distribution(question: Question, codes: Codes | None) -> Statement:
    """How many views have a value in each bucket of `distributions`."""
    where, parameters = conditions_of(question, codes)
    field = question.field
    assert field is not None
    sql = (
        f"SELECT CASE WHEN {field} IS NOT NULL THEN {bucket_sql(field)} END AS bucket, count(*) AS count"  # noqa: S608
        f" FROM views WHERE {where} GROUP BY ALL"
    )
    return Statement(sql, tuple(parameters), ("bucket", "count"))
