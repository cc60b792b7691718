"""The answer of `/v1/live`: one customer's figures of the last minutes, or one slice of them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from services.dashboard.live.history import ALL

#: live: there is a picture. waiting: the broker answers, and of none of the caller's customers anything has been counted.
#: away: the broker does not answer.
State = Literal["live", "waiting", "away"]
#: Customers that are listed, those with the most viewers.
LISTED_MAX: Final = 50
Figures = dict[str, int]


class AskedLive(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters of a live question."""

    customer: Annotated[str, msgspec.Meta(description="a customer, or * for all that you may see")] = ALL
    slice: Annotated[
        str,
        msgspec.Meta(
            max_length=600,
            description="the figures of one slice: `<dimension>=<value>`, or two dimensions with a comma"
            " and two values with U+001F between them",
        ),
    ] = ""


class Behind(msgspec.Struct, frozen=True):
    """A partition whose viewers are missing since `until_ms`."""

    partition: int
    until_ms: int


class Partitions(msgspec.Struct, frozen=True):
    """The number of partitions whose figures have come, and the partitions that are behind."""

    heard: int
    behind: list[Behind]


class LiveCustomer(msgspec.Struct, frozen=True):
    """A customer's newest figures, and the sums of its counts over the picture's time."""

    customer: str
    now: Figures | None
    totals: Figures


class LivePicture(msgspec.Struct, frozen=True):
    """Figures of 5 seconds each up to `shown_until_ms`. `series` has a value for each of them from `from_ms` on; null: unknown.

    Names that end in `_now` are gauges at the end of the 5 seconds, all others count what happened in them. Times are ms.
    """

    state: State
    now_ms: int
    bucket_ms: int
    shown_until_ms: int | None
    from_ms: int | None
    partitions: Partitions
    customer: str
    slice: str
    now: Figures | None
    totals: Figures
    #: Viewers who may belong to `slice` beside those counted: values with fewer viewers than many others have no names.
    others_now: int
    series: dict[str, list[int | None]]
    #: Where all customers are shown: those with the most viewers, and how many there are.
    customers: list[LiveCustomer]
    customers_total: int
    #: By dimension its values with the most viewers; counts are of the last `slices_ms`. Null for too many customers.
    slices: dict[str, list[dict[str, int | str]]] | None
    #: The slice within which `slices` are, except for those of its own dimension; empty: of all views.
    slices_of: str
    slices_ms: int


def ranked(customers: Mapping[str, Any]) -> list[LiveCustomer]:
    """The customers of a picture with the most viewers."""
    listed = [
        LiveCustomer(name, one["now"], one["totals"])
        for name, one in customers.items()
        if name != ALL and any(value is not None for value in one["series"]["viewers_now"])
    ]
    listed.sort(key=lambda one: (-(one.now or {}).get("viewers_now", 0), one.customer))
    return listed[:LISTED_MAX]


def totals(series: Mapping[str, Sequence[int | None]], counts: Sequence[str]) -> Figures:
    """The sums of the counts of a series."""
    return {name: sum(value or 0 for value in series[name]) for name in counts if name in series}
