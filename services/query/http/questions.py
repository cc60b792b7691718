"""Questions about figures: overall, series, breakdown, distribution, and the names that they can use."""

from typing import Final, Protocol

import msgspec
from aiohttp import web

from services.accounts.http.access import METRICS, Routing
from services.query.core.answer import Answer, Breakdown, Distribution, Overall, Timeseries
from services.query.core.dimensions import DIMENSIONS
from services.query.core.metrics import METRICS as ALL_METRICS
from services.query.core.question import (
    AnyAsked,
    Asked,
    AskedBreakdown,
    AskedDistribution,
    AskedSeries,
    Question,
    parsed,
    understood,
)
from services.query.core.suspects.measured import SuspectsBy, suspects_by
from services.query.core.undecided import DIMENSIONS_BY_END
from services.query.http.desk import Desk, Handler, sent
from services.rim.http.openapi import GUARDED, Operation


class Answers(Protocol):
    """What answers questions."""

    async def answer(self, question: Question) -> Answer:
        """The answer; raises what `desk` has a problem for."""
        ...


class MetricInfo(msgspec.Struct, frozen=True):
    """A metric that can be asked for; `worse`: in which direction it is worse for viewers.

    `suspects`: how `/v1/suspects` is asked for it; null where it is not.
    """

    name: str
    title: str
    unit: str
    kind: str
    formula: str
    worse: str | None
    suspects: SuspectsBy | None


class DimensionInfo(msgspec.Struct, frozen=True):
    """What views can be broken down and filtered by. `by_end`: the end of a view decides it, so it is unknown of open views."""

    name: str
    title: str
    kind: str
    by_end: bool


class MetricList(msgspec.Struct, frozen=True):
    """All metrics."""

    metrics: list[MetricInfo]


class DimensionList(msgspec.Struct, frozen=True):
    """All dimensions but a customer's own, which are `custom.` and their name."""

    dimensions: list[DimensionInfo]


#: What a question may be answered besides 200.
QUESTION: Final = (400, *GUARDED, 422, 504)
_ASKED: Final[list[tuple[Operation, type[AnyAsked]]]] = [
    (Operation("/v1/overall", "Metrics of all views of a range", Overall, Asked, statuses=QUESTION), Asked),
    (Operation("/v1/timeseries", "Metrics over time", Timeseries, AskedSeries, statuses=QUESTION), AskedSeries),
    (
        Operation("/v1/breakdown", "Metrics by one or two dimensions", Breakdown, AskedBreakdown, statuses=QUESTION),
        AskedBreakdown,
    ),
    (
        Operation(
            "/v1/distribution",
            "How a measured value is distributed",
            Distribution,
            AskedDistribution,
            statuses=QUESTION,
        ),
        AskedDistribution,
    ),
]
_METRICS: Final = Operation("/v1/metrics", "All metrics", MetricList)
_DIMENSIONS: Final = Operation("/v1/dimensions", "All dimensions", DimensionList)
OPERATIONS: Final = [*(operation for operation, _ in _ASKED), _METRICS, _DIMENSIONS]


class Questions:
    """The routes."""

    def __init__(self, desk: Desk, answers: Answers) -> None:
        self._desk = desk
        self._answers = answers

    def add_to(self, routing: Routing) -> None:
        """Adds them."""
        for operation, kind in _ASKED:
            routing.get(operation.path, self._desk.answering(self._asked(kind)), METRICS, name=operation.name)
        routing.get(_METRICS.path, self._desk.answering(_listed(_metrics())), METRICS, name=_METRICS.name)
        routing.get(_DIMENSIONS.path, self._desk.answering(_listed(_dimensions())), METRICS, name=_DIMENSIONS.name)

    def _asked(self, kind: type[AnyAsked]) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            caller = self._desk.caller(request)
            asked = parsed(kind, list(request.query.items()))
            question = understood(asked, caller.admit, self._desk.now_ms(), days_max=self._desk.days_max)
            async with self._desk.turn(caller, question.shape):
                await self._desk.look(request, question)
                answer = await self._answers.answer(question)
            return sent(answer)

        return handle


def _listed(what: msgspec.Struct) -> Handler:
    body = msgspec.json.encode(what)

    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    return handle


def _metrics() -> MetricList:
    return MetricList(
        [
            MetricInfo(one.name, one.title, one.unit, one.kind, one.formula, one.worse, suspects_by(one))
            for one in ALL_METRICS.values()
        ]
    )


def _dimensions() -> DimensionList:
    return DimensionList(
        [DimensionInfo(one.name, one.title, one.kind, one.name in DIMENSIONS_BY_END) for one in DIMENSIONS.values()]
    )
