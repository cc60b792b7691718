"""Values of single views of which suspects are asked by a threshold: views beyond it are the bad ones. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from services.query.core.metrics import MEASURED, METRICS, Unit
from services.query.core.parts import fields_read

#: On which side of a threshold the bad views are.
Side = Literal["above", "below"]
#: The parameter that gives the threshold of each side.
PARAMETERS: Final[Mapping[Side, str]] = {"above": "above_ms", "below": "below"}
#: The largest threshold by unit: no view plays for more than a day, none at 10 Gbps.
LARGEST: Final[Mapping[Unit, int]] = {"ms": 86_400_000, "bps": 10_000_000_000, "score": 100}
#: The share of usual views that are bad, if a question names no threshold.
_WORST: Final = 0.1


@dataclass(frozen=True)
class Value:
    """What a view has a number of, or not."""

    #: With which it is asked for.
    name: str
    title: str
    unit: Unit
    #: Over the fields of a view; null where it has no value.
    sql: str
    #: None: neither is worse by itself, so a question says which.
    side: Side | None
    #: Where the threshold is among the usual values if a question names none, 0..1 from the smallest on.
    rank: float

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a view that `sql` reads."""
        return fields_read(self.sql)

    @property
    def largest(self) -> int:
        """The largest threshold."""
        return LARGEST[self.unit]


def _values() -> dict[str, Value]:
    fields = {
        field: Value(field, title, "ms", field, None if field == "watch_ms" else "above", 1 - _WORST)
        for field, title in MEASURED.items()
    }
    found = dict(fields)
    for one in METRICS.values():
        if one.of_view is not None:
            found[one.name] = Value(one.name, one.title, one.unit, one.of_view, "below", _WORST)
        elif one.field is not None and one.worse == "higher":
            # A percentile is higher than usual where more views than usual are above the usual one.
            found[one.name] = Value(one.name, fields[one.field].title, "ms", one.field, "above", one.rank)
    return found


#: By name: the fields in ms of `/v1/distribution`, percentiles of them, and metrics that are worse when lower.
VALUES: Final[Mapping[str, Value]] = _values()
