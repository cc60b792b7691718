"""Live slices: the figures of the newest minute by the chosen dimensions, from live records. Pure; bounded."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from shared.schemas.live import BUCKET_MS, OTHER, PAIR_SEPARATOR, SLICE_VALUES_MAX, UNKNOWN, Live, LiveSlice

#: As at the newest bucket's end; a partition's last values count while it has no record of a bucket.
GAUGES: Final = ("viewers_now", "rebuffering_now", "bitrate_bps_now", "bitrate_viewers_now")
#: Summed over the buckets.
_COUNTS: Final = tuple(field for field in LiveSlice.__struct_fields__ if field not in GAUGES)
#: Their places in a slice.
FIELDS: Final = LiveSlice.__struct_fields__
_GAUGES_AT: Final = tuple(map(FIELDS.index, GAUGES))
_COUNTS_AT: Final = tuple(map(FIELDS.index, _COUNTS))
#: Over how long counts are summed: short, since it is the present that is looked at.
SPAN_MS: Final = 60_000
SPAN_BUCKETS: Final = SPAN_MS // BUCKET_MS
#: Of more customers together slices are those of the newest minute that has been landed: records are too many to be summed here.
CUSTOMERS_MAX: Final = 20

_Sums = dict[str, int]
#: By the name of the slice: `<dimension>=<value>`, of a pair `<dimension>,<dimension>=<value><separator><value>`.
Sums = dict[str, _Sums]


def summed(buckets: Sequence[Sequence[Live]], carry_ms: int, *, has_pairs: bool) -> Sums:
    """The figures of each slice that records name; those of pairs of dimensions only if they are wanted: they are most.

    `buckets` holds the records of each bucket of the span, the newest last. It takes tenths of a second where there is much.
    """
    found: dict[str, list[int]] = {}
    for record in (record for records in buckets for record in records):
        _add(found, record, _COUNTS_AT, has_pairs=has_pairs)
    for record in _carried(buckets, carry_ms):
        _add(found, record, _GAUGES_AT, has_pairs=has_pairs)
    return {name: dict(zip(FIELDS, totals, strict=True)) for name, totals in found.items()}


def slices_of(sums: Sums, within: str = "") -> dict[str, list[dict[str, Any]]]:
    """By dimension its values, most viewers first, at most `SLICE_VALUES_MAX`; then all others; then views without a value.

    Every dimension that is counted has a key. Pairs of dimensions are not among them. `sums` are those of `summed`, with pairs
    where `within` is given. Within a slice, `<dimension>=<value>`, the values of all other dimensions are those of its views, from
    pairs: what no pair names of them is among the others. Its own dimension has all values, to choose from.
    """
    own, _, its_value = within.partition("=")
    dimensions: dict[str, dict[str, _Sums]] = {}
    for name, one in sorted(sums.items()):
        dimension, _, value = name.partition("=")
        if "," not in dimension:
            # Of another dimension than the slice's it only says that it is counted.
            values = dimensions.setdefault(dimension, {})
            if own in ("", dimension):
                values[value] = one
        elif (found := _other_of(name, own, its_value)) is not None:
            dimensions.setdefault(found[0], {})[found[1]] = one
    if within:
        for dimension in dimensions.keys() - {own}:
            _add_rest(dimensions[dimension], sums.get(within))
    return {dimension: _listed(values) for dimension, values in sorted(dimensions.items())}


def others_now(buckets: Sequence[Sequence[Live]], names: Sequence[str], carry_ms: int) -> int:
    """How many viewers more a slice may have: those whom records that do not name it count without a name.

    A record names the values with the most viewers alone, and always views without a value. `names` are those of the slice, as
    `names_of` has them.
    """
    if any(is_unknown(name) for name in names):
        return 0
    return sum(
        _unnamed_of(record, name)
        for record in _carried(buckets, carry_ms)
        if not any(name in record.slices for name in names)
        for name in names
    )


def names_of(name: str) -> tuple[str, ...]:
    """How records may name a slice: that of a pair has its dimensions in the processor's order, which is not known here."""
    first, second, one, other = _parts_of(name)
    return (name, f"{second},{first}={other}{PAIR_SEPARATOR}{one}") if second else (name,)


def first_of(name: str) -> str:
    """The slice of the first dimension of a pair; any other name as it is. Empty for all others: pairs name some of them."""
    first, second, one, _ = _parts_of(name)
    found = f"{first}={one}" if second else name
    return "" if found.partition("=")[2] == OTHER else found


def series_of(buckets: Sequence[Sequence[Live]], names: Sequence[str], carry_ms: int) -> dict[str, list[int | None]]:
    """The figures of one slice bucket by bucket, the newest last; None where nothing was counted at all."""
    series: dict[str, list[int | None]] = {field: [] for field in (*GAUGES, *_COUNTS)}
    newest: dict[tuple[int, str], Live] = {}
    for records in buckets:
        if not records:
            for values in series.values():
                values.append(None)
            continue
        newest.update({(record.partition, record.customer_id): record for record in records})
        until_ms = max(record.bucket_ms for record in records)
        carried = [record for record in newest.values() if record.bucket_ms > until_ms - carry_ms]
        for fields, of in ((GAUGES, carried), (_COUNTS, records)):
            found = [record.slices[name] for record in of for name in names if name in record.slices]
            for field in fields:
                series[field].append(sum(getattr(one, field) for one in found))
    return series


def _parts_of(name: str) -> tuple[str, str, str, str]:
    """The dimensions of a pair and their values; the second of both are empty for any other slice."""
    dimensions, _, values = name.partition("=")
    first, _, second = dimensions.partition(",")
    one, _, other = values.partition(PAIR_SEPARATOR)
    return first, second, one, other


def _other_of(pair: str, dimension: str, value: str) -> tuple[str, str] | None:
    """The other dimension of a pair and its value, where the pair is of this value; else None."""
    first, second, one, other = _parts_of(pair)
    if (first, one) == (dimension, value):
        return second, other
    return (first, one) if (second, other) == (dimension, value) else None


def is_unknown(name: str) -> bool:
    """Whether a slice is that of views without a value: of a pair, without both."""
    return all(value in ("", UNKNOWN) for value in _parts_of(name)[2:])


def _unnamed_of(record: Live, name: str) -> int:
    """At most how many viewers a slice has that a record does not name.

    These are viewers without a name. For a pair they are those of each of its values whom no pair names.
    """
    dimensions = name.partition("=")[0]
    of_others = PAIR_SEPARATOR.join([OTHER] * len(dimensions.split(",")))
    others = record.slices.get(f"{dimensions}={of_others}")
    if others is None:
        return 0
    first, second, one, other = _parts_of(name)
    most = others.viewers_now
    pairs = [pair for pair in record.slices if pair.startswith(f"{dimensions}=")] if second else []
    for dimension, value in ((first, one), (second, other)) if second else ():
        whole = record.slices.get(f"{dimension}={value}")
        if whole is not None:
            # Which value `OTHER` stands for is not known.
            named = [pair for pair in pairs if (found := _other_of(pair, dimension, value)) and found[1] != OTHER]
            most = min(most, whole.viewers_now - sum(record.slices[pair].viewers_now for pair in named))
    return max(0, most)


def _carried(buckets: Sequence[Sequence[Live]], carry_ms: int) -> list[Live]:
    """The newest record of each partition and customer, as far as it counts still."""
    newest = {(record.partition, record.customer_id): record for records in buckets for record in records}
    until_ms = max((record.bucket_ms for record in newest.values()), default=0)
    return [record for record in newest.values() if record.bucket_ms > until_ms - carry_ms]


def _add(found: dict[str, list[int]], record: Live, places: Sequence[int], *, has_pairs: bool) -> None:
    for name, one in record.slices.items():
        if not has_pairs and "," in name.partition("=")[0]:
            continue
        totals = found.get(name)
        if totals is None:
            totals = found[name] = [0] * len(FIELDS)
        figures = msgspec.structs.astuple(one)
        for at in places:
            # Most are zero.
            if figures[at]:
                totals[at] += figures[at]


def _add_rest(values: dict[str, _Sums], whole: _Sums | None) -> None:
    """Adds what of a slice no value has to the others."""
    if whole is None:
        return
    rest = {field: max(0, total - sum(one[field] for one in values.values())) for field, total in whole.items()}
    if any(rest.values()):
        others = values.get(OTHER, {})
        values[OTHER] = {field: others.get(field, 0) + figure for field, figure in rest.items()}


def _listed(values: dict[str, _Sums]) -> list[dict[str, Any]]:
    others, unknown = values.pop(OTHER, None), values.pop(UNKNOWN, None)
    order = sorted(values, key=lambda value: (-values[value]["viewers_now"], -values[value]["views_finished"], value))
    for value in order[SLICE_VALUES_MAX:]:
        others = others or dict.fromkeys((*GAUGES, *_COUNTS), 0)
        others = {field: total + values[value][field] for field, total in others.items()}
    listed = [{"value": value, **values[value]} for value in order[:SLICE_VALUES_MAX]]
    rest = [{"value": value, **sums} for value, sums in ((OTHER, others), (UNKNOWN, unknown)) if sums]
    return [*listed, *rest]
