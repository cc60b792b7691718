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


def slices_of(buckets: Sequence[Sequence[Live]], carry_ms: int, within: str = "") -> dict[str, list[dict[str, Any]]]:
    """By dimension its values, most viewers first, at most `SLICE_VALUES_MAX`; then all others; then views without a value.

    Every dimension that is counted has a key. Pairs of dimensions are not among them. `buckets` holds the records of each
    bucket of the span, the newest last. Within a slice, `<dimension>=<value>`, the values of all other dimensions are those of
    its views, from pairs: what no pair names of them is among the others. Its own dimension has all values, to choose from.
    """
    found: dict[str, _Sums] = {}
    wanted = _Wanted(within)
    for record in (record for records in buckets for record in records):
        _add(found, record, _COUNTS, wanted)
    for record in _carried(buckets, carry_ms):
        _add(found, record, _GAUGES, wanted)
    dimensions: dict[str, dict[str, _Sums]] = {}
    for name, sums in sorted(found.items()):
        dimension, _, value = name.partition("=")
        dimensions.setdefault(dimension, {})[value] = sums
    if within:
        for dimension in wanted.dimensions - {wanted.dimension}:
            _add_rest(dimensions.setdefault(dimension, {}), found.get(within))
    return {dimension: _listed(values) for dimension, values in sorted(dimensions.items())}


def others_now(buckets: Sequence[Sequence[Live]], names: Sequence[str], carry_ms: int) -> int:
    """How many viewers more a slice may have: those whom records that do not name it count without a name.

    A record names the values with the most viewers alone. `names` are those of the slice, as `names_of` has them.
    """
    unnamed = [
        f"{dimensions}={PAIR_SEPARATOR.join([OTHER] * len(dimensions.split(',')))}"
        for dimensions in (name.partition("=")[0] for name in names)
    ]
    return sum(
        record.slices[other].viewers_now
        for record in _carried(buckets, carry_ms)
        if not any(name in record.slices for name in names)
        for other in unnamed
        if other in record.slices
    )


def names_of(name: str) -> tuple[str, ...]:
    """How records may name a slice: that of a pair has its dimensions in the processor's order, which is not known here."""
    dimensions, _, values = name.partition("=")
    first, _, second = dimensions.partition(",")
    one, _, other = values.partition(PAIR_SEPARATOR)
    return (name, f"{second},{first}={other}{PAIR_SEPARATOR}{one}") if second else (name,)


def first_of(name: str) -> str:
    """The slice of the first dimension of a pair; any other name as it is."""
    dimensions, _, values = name.partition("=")
    first, _, second = dimensions.partition(",")
    return f"{first}={values.partition(PAIR_SEPARATOR)[0]}" if second else name


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


class _Wanted:
    """Which slices of records are added up under which name: those of one dimension, or what they say of one slice."""

    def __init__(self, within: str) -> None:
        self.dimension, _, self._value = within.partition("=")
        #: Those that are counted at all.
        self.dimensions: set[str] = set()
        #: Records have the same names again and again.
        self._known: dict[str, str | None] = {}

    def name_of(self, name: str) -> str | None:
        """The name, `<dimension>=<value>`, under which slice `name` counts; None: under none."""
        try:
            return self._known[name]
        except KeyError:
            found = self._known[name] = self._found(name)
            return found

    def _found(self, name: str) -> str | None:
        dimensions, _, values = name.partition("=")
        first, _, second = dimensions.partition(",")
        if not second:
            self.dimensions.add(first)
            return name if self.dimension in ("", first) else None
        one, _, other = values.partition(PAIR_SEPARATOR)
        if (first, one) == (self.dimension, self._value):
            return f"{second}={other}"
        return f"{first}={one}" if (second, other) == (self.dimension, self._value) else None


def _carried(buckets: Sequence[Sequence[Live]], carry_ms: int) -> list[Live]:
    """The newest record of each partition and customer, as far as it counts still."""
    newest = {(record.partition, record.customer_id): record for records in buckets for record in records}
    until_ms = max((record.bucket_ms for record in newest.values()), default=0)
    return [record for record in newest.values() if record.bucket_ms > until_ms - carry_ms]


def _add(found: dict[str, _Sums], record: Live, fields: Sequence[str], wanted: _Wanted) -> None:
    for name, one in record.slices.items():
        counted = wanted.name_of(name)
        if counted is None:
            continue
        sums = found.get(counted)
        if sums is None:
            sums = found[counted] = dict.fromkeys((*_GAUGES, *_COUNTS), 0)
        for field in fields:
            sums[field] += getattr(one, field)


def _add_rest(values: dict[str, _Sums], whole: _Sums | None) -> None:
    """Adds what of a slice no value has to the others."""
    if whole is None:
        return
    rest = {field: max(0, total - sum(one[field] for one in values.values())) for field, total in whole.items()}
    if any(rest.values()):
        others = values.setdefault(OTHER, dict.fromkeys(rest, 0))
        for field, figure in rest.items():
            others[field] += figure


def _listed(values: dict[str, _Sums]) -> list[dict[str, Any]]:
    others, unknown = values.pop(OTHER, None), values.pop(UNKNOWN, None)
    order = sorted(values, key=lambda value: (-values[value]["viewers_now"], -values[value]["views_finished"], value))
    for value in order[SLICE_VALUES_MAX:]:
        others = others or dict.fromkeys((*_GAUGES, *_COUNTS), 0)
        others = {field: total + values[value][field] for field, total in others.items()}
    listed = [{"value": value, **values[value]} for value in order[:SLICE_VALUES_MAX]]
    rest = [{"value": value, **sums} for value, sums in ((OTHER, others), (UNKNOWN, unknown)) if sums]
    return [*listed, *rest]
