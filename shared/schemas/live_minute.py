"""A minute of topic `live`: one dimension (or pair, or the whole) of one customer. Rows of `serving.live_steps` and `live_minutes`.

Figures are sums over partitions. A field that is zero is left out.
"""

from typing import Any, Final

import msgspec

from shared.schemas.live import BUCKET_MS, Live, LiveSlice

MINUTE_MS: Final = 60_000
STEPS: Final = MINUTE_MS // BUCKET_MS
#: The dimension of the customer's own figures, and its one value.
WHOLE: Final = ""
#: The dimension of rejected input, by reason, and the field that counts it.
REJECTED: Final = "rejected"
COUNT: Final = "count"
#: What is kept of customers without room, together under `GATHERED`: by every other dimension they have nothing.
GATHERED: Final = ""
GATHERED_DIMENSIONS: Final = (WHOLE, REJECTED)
#: As at the end of each step; all other fields count what happened in it.
GAUGES: Final = tuple(field for field in Live.__struct_fields__ if field.endswith("_now"))
FIELDS: Final = tuple(
    field
    for field in Live.__struct_fields__
    if field not in ("schema_version", "partition", "customer_id", "bucket_ms", "slices")
)
#: Figures of topic `received`: of the customer, and by the dimensions of `shared.schemas.received`.
RECEIVED_FIELDS: Final = ("received", "rejected")
VIEWERS_MAX: Final = "viewers_max"


class LiveSteps(msgspec.Struct, kw_only=True):
    """The twelve steps of a minute."""

    #: Of how many partitions each step has figures; 0: nothing is known of it. Of dimension `WHOLE` alone.
    heard: list[int] = []
    #: value → field → a number for each step
    values: dict[str, dict[str, list[int]]] = {}


class LiveMinute(msgspec.Struct, kw_only=True):
    """The same minute in one number a field: gauges are sums over the steps, counts are sums of what happened."""

    #: Of how many steps something is known: a gauge divided by it is its mean over the minute.
    steps: int = 0
    #: value → field → number; `VIEWERS_MAX`: the most viewers of any step
    values: dict[str, dict[str, int]] = {}


STEPS_DECODER: Final = msgspec.json.Decoder(LiveSteps)
MINUTE_DECODER: Final = msgspec.json.Decoder(LiveMinute)


def add_figures(into: LiveSteps, value: str, step: int, figures: dict[str, int]) -> None:
    """Adds figures by field to a step of a value."""
    fields = into.values.setdefault(value, {})
    for field, figure in figures.items():
        if figure:
            fields.setdefault(field, [0] * STEPS)[step] += figure


def add_steps(into: LiveSteps, more: LiveSteps) -> None:
    """Adds other steps of the same minute and dimension."""
    if more.heard:
        into.heard = [a + b for a, b in zip(into.heard or [0] * STEPS, more.heard, strict=True)]
    for value, fields in more.values.items():
        known = into.values.setdefault(value, {})
        for field, numbers in fields.items():
            before = known.get(field)
            known[field] = list(numbers) if before is None else [a + b for a, b in zip(before, numbers, strict=True)]


def minute_of(steps: LiveSteps, heard: list[int]) -> LiveMinute:
    """The minute in one number a field. `heard` is that of the customer's whole: of a dimension it is not known apart."""
    found = LiveMinute(steps=sum(count > 0 for count in heard))
    for value, fields in steps.values.items():
        summed = {field: total for field, numbers in fields.items() if (total := sum(numbers))}
        if viewers := max(fields.get("viewers_now", [0])):
            summed[VIEWERS_MAX] = viewers
        if summed:
            found.values[value] = summed
    return found


def figures_of(record: Live | LiveSlice, *, gauges_only: bool = False) -> dict[str, int]:
    """The figures of a record, or of a slice of one, that are not zero."""
    names: Any = GAUGES if gauges_only else FIELDS
    return {field: figure for field in names if (figure := getattr(record, field, 0))}
