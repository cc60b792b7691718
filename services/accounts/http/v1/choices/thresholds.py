"""`/v1/thresholds`: from which figure on the page shows a metric as good or bad, by customer."""

from functools import partial
from typing import Annotated

import msgspec

from services.accounts.core.thresholds import N_MAX, Metric, Origin, Threshold, ThresholdWrong, checked, effective
from services.accounts.http.access import EDITING, METRICS
from services.accounts.http.problems import unknown
from services.accounts.http.v1.operations import Call, Operation
from services.accounts.service import Accounts
from services.accounts.store.customers import thresholds
from shared.directions import WORSE, Worse
from shared.schemas.beacon import CUSTOMER_ID

_Customer = Annotated[str, msgspec.Meta(max_length=64, description="a customer; empty: all that have no own")]
_Figure = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_N = Annotated[int, msgspec.Meta(ge=1, le=N_MAX)]


class ThresholdsAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whose."""

    customer: _Customer = ""


class ShownThreshold(msgspec.Struct, frozen=True):
    """What a figure is by its threshold: shares from 0 to 1, times in ms, bitrates in bps, scores to 100.

    If more is worse (`worse` is `higher`), it is good up to `good`, and bad above `bad`. If less is worse (`lower`), it is good
    from `good` on, and bad below `bad`. Of fewer than `n` views it is neither. All three null: the metric is not judged.
    `of`: who chose.
    """

    metric: Metric
    worse: Worse
    good: float | None
    bad: float | None
    n: int | None
    of: Origin


class Thresholds(msgspec.Struct, frozen=True):
    """The thresholds of each figure that can be judged."""

    thresholds: list[ShownThreshold]


class ThresholdChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The threshold that is chosen for a customer, or, without one, for all customers that have none of their own.

    `good` is at most `bad`; of a metric that is worse when it is lower, at least. All three null: as without a choice.
    """

    metric: Metric
    customer: _Customer = ""
    good: _Figure | None = None
    bad: _Figure | None = None
    n: _N | None = None


class ThresholdOperations:
    """The operations."""

    def __init__(self, accounts: Accounts) -> None:
        self._ask = accounts.postgres.ask

    def operations(self) -> list[Operation]:
        """All of them."""
        path, asked, change = "/v1/thresholds", ThresholdsAsked, ThresholdChange
        return [
            Operation(
                "get", path, "From which figure on metrics are good or bad", METRICS, self.read, Thresholds, query=asked
            ),
            Operation("patch", path, "Chooses one of them", EDITING, self.change, Thresholds, body=change),
        ]

    async def read(self, call: Call) -> Thresholds:
        """The thresholds in force for the customer."""
        return await self._shown(call, _customer(call, call.query.customer))

    async def change(self, call: Call) -> Thresholds:
        """Raises `ThresholdWrong`."""
        asked: ThresholdChange = call.body
        customer_id = _customer(call, asked.customer)
        given = (asked.good, asked.bad, asked.n)
        chosen = None
        if asked.good is not None and asked.bad is not None and asked.n is not None:
            chosen = checked(asked.metric, Threshold(asked.good, asked.bad, asked.n))
        elif given != (None, None, None):
            raise ThresholdWrong("good, bad and n are given together, or none of them")
        await self._ask(
            partial(thresholds.choose, customer_id=customer_id, metric=asked.metric, threshold=chosen, actor=call.actor)
        )
        return await self._shown(call, customer_id)

    async def _shown(self, call: Call, customer_id: str) -> Thresholds:
        organisation_id = call.principal.organisation_id
        chosen = await self._ask(partial(thresholds.chosen, organisation_id=organisation_id, customer_id=customer_id))
        found = effective(chosen, customer_id)
        return Thresholds([_shown(metric, one, of) for metric, (one, of) in found.items()])


def _shown(metric: Metric, threshold: Threshold | None, of: Origin) -> ShownThreshold:
    good, bad, n = (None, None, None) if threshold is None else threshold
    return ShownThreshold(metric, WORSE[metric], good, bad, n, of)


def _customer(call: Call, customer_id: str) -> str:
    if customer_id and (not CUSTOMER_ID.fullmatch(customer_id) or not call.principal.scope.has(customer_id)):
        raise unknown("customer")
    return customer_id
