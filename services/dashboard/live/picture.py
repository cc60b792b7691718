"""The answer of `/v1/live`: one customer's figures of the last minutes, or one slice of them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from services.dashboard.live.history import ALL

#: live: there is a picture. waiting: the broker answers, and of none of the caller's customers anything has been counted.
#: away: the broker does not answer.
State = Literal["live", "waiting", "away"]
#: Where slices come from, or why there are none, or no newer ones.
SlicesState = Literal["live", "by_minute", "coming", "none", "away", "failed"]
#: Customers that are listed, those with the most viewers.
LISTED_MAX: Final = 50
Figures = dict[str, int]


#: By what the customers of a picture are ordered: what it is of, and of how many (None: it is a number of those itself). A share is
#: ordered as a share: a small customer that fails is before a large one with as many failures.
_ORDERS: Final[Mapping[str, tuple[str, str | None]]] = {
    "viewers": ("viewers_now", None),
    "rebuffering": ("rebuffering_now", "viewers_now"),
    "bitrate": ("bitrate_bps_now", "bitrate_viewers_now"),
    "starts": ("views_started", None),
    "failures": ("failures", "views_started"),
    "exits": ("exits_before_start", "views_finished"),
}


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Which customers a picture lists first."""

    by: str = "viewers"
    is_ascending: bool = False
    #: Of a share: customers with fewer viewers, or views, that it is of are not listed.
    n_min: int = 0


VIEWERS: Final = Order()


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
    customers_by: Annotated[
        Literal["viewers", "rebuffering", "bitrate", "starts", "failures", "exits"],
        msgspec.Meta(
            description="of which figure the customers that are listed have most; failures and exits by their share"
        ),
    ] = "viewers"
    customers_order: Literal["descending", "ascending"] = "descending"
    customers_min: Annotated[
        int,
        msgspec.Meta(
            ge=0, description="of how many viewers or views a customer's share is at least, to be listed by it"
        ),
    ] = 0

    @property
    def order(self) -> Order:
        """What the last three say."""
        return Order(by=self.customers_by, is_ascending=self.customers_order == "ascending", n_min=self.customers_min)


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

    def figure(self, name: str) -> int:
        """A gauge of now, or the sum of a count: `now` has the counts of its 5 seconds under the same names."""
        return ((self.now or {}) | self.totals).get(name, 0)


class LivePicture(msgspec.Struct, frozen=True):
    """Figures of 5 seconds each up to `shown_until_ms`. `series` has a value for each of them from `from_ms` on; null: unknown.

    Of more than 20 customers together, slices are added up by minute, and so are the figures of a `slice`. These are of the minutes
    up to `slices_as_of_ms`: `bucket_ms` is 60,000 then, and a gauge is its mean over a minute.

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
    #: Where all customers are shown: the first ones in the order that was asked for, and how many there are.
    customers: list[LiveCustomer]
    customers_total: int
    #: How many of these, those with the most viewers, are counted apart: an order by another figure is among them.
    customers_held: int
    #: By dimension its values with the most viewers; counts are of `slices_ms` up to `slices_as_of_ms`. Null where none are known.
    slices: dict[str, list[dict[str, int | str]]] | None
    #: The slice within which `slices` are, except for those of its own dimension; empty: of all views.
    slices_of: str
    slices_ms: int
    #: live: counted with the rest of the picture. Of more than 20 customers by_minute: of the newest whole minute that is known.
    #: coming: being added up. none: of the last hour there are none. away: Postgres does not answer. failed: it needs too long.
    #: Slices that are there in the last three states are those of an earlier answer.
    slices_state: SlicesState
    #: When the time ends that slices are of, ms since 1970; null: there are none.
    slices_as_of_ms: int | None


def ranked(customers: Mapping[str, Any], order: Order) -> list[LiveCustomer]:
    """The first customers of a picture in an order; of equal ones those with more viewers. One without the figure comes last."""
    listed = [
        LiveCustomer(name, one["now"], one["totals"])
        for name, one in customers.items()
        if name != ALL and any(value is not None for value in one["series"]["viewers_now"])
    ]
    above, below = _ORDERS[order.by]

    def place(one: LiveCustomer) -> tuple[bool, float, int, str]:
        of = one.figure(below) if below else 1
        value = one.figure(above) / of if of else 0.0
        return not of, value if order.is_ascending else -value, -one.figure("viewers_now"), one.customer

    if below:
        listed = [one for one in listed if one.figure(below) >= order.n_min]
    listed.sort(key=place)
    return listed[:LISTED_MAX]


def totals(series: Mapping[str, Sequence[int | None]], counts: Sequence[str]) -> Figures:
    """The sums of the counts of a series."""
    return {name: sum(value or 0 for value in series[name]) for name in counts if name in series}
