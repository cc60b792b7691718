"""The answer of `/v1/live/history`: the earlier live picture, from minutes that `services/serving` has landed. Pure; bounded."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, NamedTuple

import msgspec

from shared.http.patterns import whole
from shared.schemas import received
from shared.schemas.live import (
    BUCKET_MS,
    DIMENSIONS,
    OTHER,
    PAIR_SEPARATOR,
    SLICE_VALUE_CHARS_MAX,
    SLICE_VALUES_MAX,
    UNKNOWN,
    LiveSlice,
)
from shared.schemas.live_minute import (
    COUNT,
    FIELDS,
    GAUGES,
    MINUTE_DECODER,
    MINUTE_MS,
    RECEIVED_FIELDS,
    REJECTED,
    STEPS,
    STEPS_DECODER,
    VIEWERS_MAX,
    WHOLE,
)

#: Steps of one answer, and minutes that one is made of (two weeks).
POINTS_MAX: Final = 1_500
MINUTES_MAX: Final = 20_160
_DIMENSION: Final = "|".join(DIMENSIONS)
#: Of these, views that are watched say nothing.
_OF_INTAKE: Final = (REJECTED, *received.DIMENSIONS)
_PATTERN: Final = whole(rf"(({_DIMENSION})(,({_DIMENSION}))?|{'|'.join(_OF_INTAKE)})?")
#: Postgres has no text with a zero character.
_VALUE_PATTERN: Final = whole(r"[^\x00]*")
_NAMES: Final = (*FIELDS, *RECEIVED_FIELDS, VIEWERS_MAX, COUNT)
#: What is listed last, of one dimension and of a pair.
_APART_OTHERS: Final = (OTHER, f"{OTHER}{PAIR_SEPARATOR}{OTHER}")
_UNKNOWN: Final = (UNKNOWN, f"{UNKNOWN}{PAIR_SEPARATOR}{UNKNOWN}")
APART: Final = frozenset((*_APART_OTHERS, *_UNKNOWN))
_Number = int | float | None


class AskedPast(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a question about the past."""

    customer: Annotated[str, msgspec.Meta(description="a customer, or * for all that you may see together")]
    from_ms: Annotated[int, msgspec.Meta(ge=0, le=1 << 53, description="ms since 1970; cut to a whole step")]
    until_ms: Annotated[int, msgspec.Meta(ge=0, le=1 << 53, description="ms since 1970; not included")]
    dimension: Annotated[
        str,
        msgspec.Meta(
            pattern=_PATTERN,
            description="a live dimension, two with a comma between them, `rejected` (by reason), `collector` or `release` "
            "(what was received and rejected): by value; empty: the customer's own",
        ),
    ] = WHOLE
    value: Annotated[
        str,
        msgspec.Meta(
            pattern=_VALUE_PATTERN,
            max_length=2 * SLICE_VALUE_CHARS_MAX + len(PAIR_SEPARATOR),
            description="only this value of the dimension, of which any that figures name may be asked; empty: the largest",
        ),
    ] = ""
    step_ms: Annotated[
        int, msgspec.Meta(ge=BUCKET_MS, description="5000, of the last day alone, or a multiple of 60000")
    ] = MINUTE_MS
    fields: Annotated[str, msgspec.Meta(max_length=400, description="names of figures, with commas between them")] = (
        "viewers_now"
    )

    @property
    def names(self) -> list[str]:
        """The names of the figures, each once."""
        return list(dict.fromkeys(self.fields.split(",")))


class PastValue(msgspec.Struct, frozen=True):
    """The figures of one value, by field: one a step, null where nothing is known of it."""

    value: str
    series: dict[str, list[_Number]]


class PastPicture(msgspec.Struct, frozen=True):
    """Steps from `from_ms` on. `_now` fields are means over what is known of a step, `viewers_max` is its peak, others are sums.

    Of all customers `viewers_max` is at most the sum of their peaks in a minute.

    Values are those with the most viewers, at most `SLICE_VALUES_MAX`; the others are added up. A value counts where figures name
    it: every few seconds each part of a customer's viewers names its largest values, and the rest are among the others.
    """

    from_ms: int
    step_ms: int
    dimension: str
    values: list[PastValue]


class Wrong(ValueError):
    """The question is wrong; the text says why."""


class Row(NamedTuple):
    """One row of `serving.live_minutes` or `live_steps`."""

    dimension: str
    minute: int
    document: str


def checked(asked: AskedPast) -> list[str]:
    """The fields that are asked for. Raises `Wrong`."""
    if asked.step_ms != BUCKET_MS and asked.step_ms % MINUTE_MS:
        raise Wrong(f"step_ms is {BUCKET_MS} or a multiple of {MINUTE_MS}")
    begin, end = _bounds(asked)
    if not begin < end or (end - begin) // asked.step_ms > POINTS_MAX:
        raise Wrong(f"from_ms and until_ms are at least one step apart, and at most {POINTS_MAX}")
    if (end - begin) // MINUTE_MS > MINUTES_MAX:
        raise Wrong(f"from_ms and until_ms are at most {MINUTES_MAX} minutes apart")
    if asked.value and (asked.dimension == WHOLE or asked.value in _APART_OTHERS):
        raise Wrong(f"value is one of a dimension; {OTHER} is all that are not among the largest: leave value out")
    fields = asked.names
    if unknown := sorted(set(fields) - set(_NAMES)):
        raise Wrong(f"there is no field {unknown[0]}: {', '.join(_NAMES)}")
    return fields


def minutes_of(asked: AskedPast) -> tuple[int, int]:
    """The first minute that is read, and the one after the last (since 1970)."""
    begin, end = _bounds(asked)
    return begin // MINUTE_MS, -(-end // MINUTE_MS)


def orders_of(dimension: str) -> list[str]:
    """How rows may name a dimension: a pair has the processor's order, which is not known here."""
    return [dimension, turned(dimension, ",")] if "," in dimension else [dimension]


def turned(pair: str, separator: str = PAIR_SEPARATOR) -> str:
    """The two values of a pair in the other order; one value as it is."""
    first, _, second = pair.partition(separator)
    return f"{second}{separator}{first}" if second else pair


def weight_of(dimension: str) -> str:
    """The field by which the values of a dimension are ranked."""
    if dimension == REJECTED:
        return COUNT
    return "received" if dimension in _OF_INTAKE else "viewers_now"


def fields_of(dimension: str) -> frozenset[str]:
    """The fields that the values of a dimension have; of every other they have nothing."""
    if dimension == REJECTED:
        return frozenset((COUNT,))
    return frozenset(RECEIVED_FIELDS if dimension in _OF_INTAKE else (*LiveSlice.__struct_fields__, VIEWERS_MAX))


def others_of(dimension: str) -> str:
    """How figures by a dimension, or by a pair, name those of all values without a name."""
    return _APART_OTHERS["," in dimension]


def assembled(asked: AskedPast, fields: list[str], rows: Iterable[Row]) -> PastPicture:
    """The answer from rows of the dimension and of the whole: the latter say of which steps anything is known."""
    begin, end = _bounds(asked)
    dimensions, weight = orders_of(asked.dimension), weight_of(asked.dimension)
    points = -(-(end - begin) // asked.step_ms)
    known = [0] * points
    values: dict[str, _Sums] = {}
    viewers: dict[str, int] = {}
    for row in rows:
        parts = _minute(row) if asked.step_ms >= MINUTE_MS else _steps(row)
        for at_ms, heard, figures_by_value in parts:
            point = (at_ms - begin) // asked.step_ms
            if not 0 <= point < points:
                continue
            known[point] += heard
            if row.dimension not in dimensions:
                continue
            for named, figures in figures_by_value.items():
                value = named if row.dimension == asked.dimension else turned(named)
                if asked.value and (asked.value != value or not any(figures.values())):
                    continue
                viewers[value] = viewers.get(value, 0) + figures.get(weight, 0)
                _add(values.setdefault(value, {}), fields, figures, point, points)
    if asked.dimension in _OF_INTAKE or set(fields) <= set(RECEIVED_FIELDS):
        # Of whom nobody watches anything may be rejected.
        known = [1] * points
    return PastPicture(
        begin,
        asked.step_ms,
        asked.dimension,
        [
            PastValue(value, {field: _series(field, sums.get(field, [0] * points), known) for field in fields})
            for value, sums in _largest(values, viewers)
        ],
    )


_Sums = dict[str, list[int]]
_Part = tuple[int, int, dict[str, dict[str, int]]]


def _bounds(asked: AskedPast) -> tuple[int, int]:
    return asked.from_ms - asked.from_ms % asked.step_ms, asked.until_ms


def _minute(row: Row) -> Iterator[_Part]:
    """When it began, of how many steps something is known, and figures by value."""
    minute = MINUTE_DECODER.decode(row.document)
    yield row.minute * MINUTE_MS, minute.steps if row.dimension == WHOLE else 0, minute.values


def _steps(row: Row) -> Iterator[_Part]:
    """The same of each step."""
    steps = STEPS_DECODER.decode(row.document)
    heard = steps.heard or [0] * STEPS
    for step in range(STEPS):
        figures_by_value = {}
        for value, fields in steps.values.items():
            figures = {field: numbers[step] for field, numbers in fields.items() if numbers[step]}
            if "viewers_now" in figures:
                figures[VIEWERS_MAX] = figures["viewers_now"]
            figures_by_value[value] = figures
        yield row.minute * MINUTE_MS + step * BUCKET_MS, int(heard[step] > 0), figures_by_value


def _add(sums: _Sums, fields: Iterable[str], figures: dict[str, int], point: int, points: int) -> None:
    for field in fields:
        if figure := figures.get(field):
            numbers = sums.setdefault(field, [0] * points)
            numbers[point] = max(numbers[point], figure) if field == VIEWERS_MAX else numbers[point] + figure


def _largest(values: dict[str, _Sums], viewers: dict[str, int]) -> list[tuple[str, _Sums]]:
    """The values with the most viewers, then all others in one, then what has no value."""
    order = sorted((value for value in values if value not in APART), key=lambda value: (-viewers[value], value))
    others = next((values[value] for value in _APART_OTHERS if value in values), {})
    for value in order[SLICE_VALUES_MAX:]:
        for field, numbers in values[value].items():
            before = others.get(field, [0] * len(numbers))
            # A peak of several values is at most the sum of theirs.
            others[field] = [a + b for a, b in zip(before, numbers, strict=True)]
    listed = [(value, values[value]) for value in order[:SLICE_VALUES_MAX]]
    rest = [(OTHER, others), *((UNKNOWN, values[value]) for value in values if value in _UNKNOWN)]
    return [*listed, *((value, sums) for value, sums in rest if sums)]


def _series(field: str, numbers: list[int], known: list[int]) -> list[_Number]:
    if field in GAUGES:
        return [number / count if count else None for number, count in zip(numbers, known, strict=True)]
    return [number if count else None for number, count in zip(numbers, known, strict=True)]
