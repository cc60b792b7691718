"""The list of errors as it is answered, of the rows of its statements. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from services.query.core import cursors
from services.query.core.answer import About, Figure, span
from services.query.core.resources.errors.errors import BY, ErrorCode, ErrorList, ErrorsQuestion, Occurrence, Sample

Row = Mapping[str, Any]


def answer(asked: ErrorsQuestion, rows: Sequence[Sequence[Row]], about: About, *, is_seen: bool = True) -> ErrorList:
    """The list that the rows of the statements make. `is_seen`: the days before the range could be looked through."""
    (totals,), codes, values, samples = rows
    listed = codes[: asked.limit]
    errors = [_code(asked, row, totals, values, samples) for row in listed]
    following, compared = None, None
    if len(codes) > asked.limit:
        following = cursors.closed(asked.name, asked.range, (listed[-1]["place"], listed[-1]["code"]))
    if asked.compared is not None:
        about, compared = msgspec.structs.replace(about, range=span(asked.range)), span(asked.compared)
    counts = totals["views"], totals["with_error"], totals["codes"]
    seen_from_ms = (asked.seen.range if is_seen else asked.range).from_ms
    return ErrorList(about, *counts, errors, seen_from_ms, asked.since_ms, compared, following)


def _code(asked: ErrorsQuestion, row: Row, totals: Row, values: Sequence[Row], samples: Sequence[Row]) -> ErrorCode:
    code = row["code"]
    places: dict[str, list[Occurrence]] = {name: [] for name in ("", *BY)}
    for one in values:
        if one["code"] == code:
            places[one["dimension"]].append(Occurrence(one["value"], one["views"]))
    new: dict[str, Any] = {}
    if asked.since_ms is not None or asked.compared is not None:
        new = {
            "is_new": row["earlier"] == 0 and row["seen_ms"] is None,
            "before": _share(row["earlier"], totals["earlier"]),
            "after": _share(row["later"], totals["later"]),
        }
    return ErrorCode(
        code=code,
        views=row["views"],
        share=_share(row["views"], totals["views"]),
        viewers=row["viewers"],
        failed=row["failed"],
        first_ms=row["first_ms"],
        last_ms=row["last_ms"],
        texts=[occurrence for occurrence in places[""] if occurrence.value is not None],
        by={name: places[name] for name in BY},
        samples=[
            Sample(one["customer_id"], one["view_id"], one["day"], one["at_ms"], one["viewer"])
            for one in samples
            if one["code"] == code
        ],
        **new,
    )


def _share(of: int, n: int) -> Figure:
    return Figure(of / n if n else None, n)
