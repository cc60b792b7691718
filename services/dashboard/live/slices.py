"""Live slices: the figures of the newest minute by the chosen dimensions, from live records. Pure; bounded."""

from collections.abc import Sequence
from typing import Any, Final

from shared.schemas.live import BUCKET_MS, OTHER, PAIR_SEPARATOR, SLICE_VALUES_MAX, UNKNOWN, Live, LiveSlice

#: As at the newest bucket's end; a partition's last values count while it has no record of a bucket.
_GAUGES: Final = ("viewers_now", "rebuffering_now", "bitrate_bps_now", "bitrate_viewers_now")
#: Summed over the buckets.
_COUNTS: Final = tuple(field for field in LiveSlice.__struct_fields__ if field not in _GAUGES)
#: Over how long counts are summed: short, since it is the present that is looked at.
SPAN_MS: Final = 60_000
SPAN_BUCKETS: Final = SPAN_MS // BUCKET_MS
#: Of more customers together there are no slices: each has values of its own, and summing them takes long.
CUSTOMERS_MAX: Final = 20

_Sums = dict[str, int]


def slices_of(buckets: Sequence[Sequence[Live]], carry_ms: int) -> dict[str, list[dict[str, Any]]]:
    """By dimension its values, most viewers first, at most `SLICE_VALUES_MAX`; then all others; then views without a value.

    Pairs of dimensions are not among them. `buckets` holds the records of each bucket of the span, the newest last.
    """
    found: dict[str, _Sums] = {}
    newest: dict[tuple[int, str], Live] = {}
    for records in buckets:
        for record in records:
            newest[record.partition, record.customer_id] = record
            for name, one in record.slices.items():
                _add(found, name, one, _COUNTS)
    until_ms = max((record.bucket_ms for record in newest.values()), default=0)
    for record in newest.values():
        if record.bucket_ms > until_ms - carry_ms:
            for name, one in record.slices.items():
                _add(found, name, one, _GAUGES)
    dimensions: dict[str, dict[str, _Sums]] = {}
    for name, sums in sorted(found.items()):
        dimension, _, value = name.partition("=")
        dimensions.setdefault(dimension, {})[value] = sums
    return {dimension: _listed(values) for dimension, values in dimensions.items()}


def names_of(name: str) -> tuple[str, ...]:
    """How records may name a slice: that of a pair has its dimensions in the processor's order, which is not known here."""
    dimensions, _, values = name.partition("=")
    first, _, second = dimensions.partition(",")
    one, _, other = values.partition(PAIR_SEPARATOR)
    return (name, f"{second},{first}={other}{PAIR_SEPARATOR}{one}") if second else (name,)


def series_of(buckets: Sequence[Sequence[Live]], names: Sequence[str], carry_ms: int) -> dict[str, list[int | None]]:
    """The figures of one slice bucket by bucket, the newest last; None where nothing was counted at all."""
    series: dict[str, list[int | None]] = {field: [] for field in (*_GAUGES, *_COUNTS)}
    newest: dict[tuple[int, str], Live] = {}
    for records in buckets:
        if not records:
            for values in series.values():
                values.append(None)
            continue
        newest.update({(record.partition, record.customer_id): record for record in records})
        until_ms = max(record.bucket_ms for record in records)
        carried = [record for record in newest.values() if record.bucket_ms > until_ms - carry_ms]
        for field, of in (*((field, carried) for field in _GAUGES), *((field, records) for field in _COUNTS)):
            found = (record.slices[name] for record in of for name in names if name in record.slices)
            series[field].append(sum(getattr(one, field) for one in found))
    return series


def _add(found: dict[str, _Sums], name: str, one: Any, fields: Sequence[str]) -> None:
    if "," in name.partition("=")[0]:
        return
    sums = found.setdefault(name, dict.fromkeys((*_GAUGES, *_COUNTS), 0))
    for field in fields:
        sums[field] += getattr(one, field)


def _listed(values: dict[str, _Sums]) -> list[dict[str, Any]]:
    others, unknown = values.pop(OTHER, None), values.pop(UNKNOWN, None)
    order = sorted(values, key=lambda value: (-values[value]["viewers_now"], -values[value]["views_finished"], value))
    for value in order[SLICE_VALUES_MAX:]:
        others = others or dict.fromkeys((*_GAUGES, *_COUNTS), 0)
        others = {field: total + values[value][field] for field, total in others.items()}
    listed = [{"value": value, **values[value]} for value in order[:SLICE_VALUES_MAX]]
    rest = [{"value": value, **sums} for value, sums in ((OTHER, others), (UNKNOWN, unknown)) if sums]
    return [*listed, *rest]
