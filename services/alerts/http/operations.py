"""The operations of `/v1/alerts/…`: paths, bodies and answers, from which routes and the OpenAPI document follow."""

from typing import Final, Literal

from services.alerts.core.rules import RuleBody
from services.alerts.core.trial import Tried
from services.alerts.http import bodies
from services.rim.http.openapi import GUARDED, Operation

_CHANGES: Final = (400, *GUARDED, 409, 413)
_STATUSES: Final = {"get": (400, *GUARDED), "post": _CHANGES, "put": _CHANGES, "delete": GUARDED}


def _operation(
    method: Literal["get", "post", "put", "delete"],
    path: str,
    summary: str,
    answers: type | None = None,
    *,
    takes: type | None = None,
    asks: type | None = None,
    further: tuple[int, ...] = (),
) -> Operation:
    made = 201 if method == "post" and answers is bodies.Made else 200
    return Operation(
        f"/v1/alerts/{path}",
        summary,
        answers,
        asks,
        takes,
        method,
        status=made if answers is not None else 204,
        statuses=(*_STATUSES[method], *further),
        tag="alerts",
    )


OPERATIONS: Final = [
    _operation("get", "rules", "Alert rules", bodies.RuleList, asks=bodies.AskedRules),
    _operation("post", "rules", "Add an alert rule", bodies.Made, takes=RuleBody),
    _operation(
        "post", "rules/trial", "What a rule would have found in the last 7 days", Tried, takes=RuleBody, further=(504,)
    ),
    _operation(
        "get",
        "rules/suggested",
        "Rules that an environment should have",
        bodies.SuggestedRules,
        asks=bodies.AskedSuggested,
    ),
    _operation("get", "rules/{id}", "An alert rule", bodies.Rule),
    _operation("put", "rules/{id}", "Change an alert rule", bodies.Made, takes=bodies.RuleChange),
    _operation("delete", "rules/{id}", "Delete an alert rule"),
    _operation("get", "rules/{id}/versions", "All versions of an alert rule", bodies.RuleList, asks=bodies.AskedPage),
    _operation("get", "receivers", "Receivers of messages", bodies.ReceiverList, asks=bodies.AskedPage),
    _operation("post", "receivers", "Add a receiver", bodies.Made, takes=bodies.NewReceiver),
    _operation("put", "receivers/{id}", "Change a receiver", takes=bodies.ReceiverChange),
    _operation("delete", "receivers/{id}", "Delete a receiver"),
    _operation("post", "receivers/{id}/test", "Send a test to a receiver", bodies.Made),
    _operation(
        "get", "deliveries", "Messages, and what became of them", bodies.DeliveryList, asks=bodies.AskedDeliveries
    ),
    _operation("post", "deliveries/{id}/again", "Try a dead message again"),
    _operation("get", "incidents", "Incidents", bodies.IncidentList, asks=bodies.AskedIncidents),
    _operation("get", "incidents/{id}", "An incident with its changes, comments and messages", bodies.IncidentStory),
    _operation("post", "incidents/{id}/acknowledge", "Acknowledge an incident"),
    _operation("post", "incidents/{id}/mute", "Mute an incident", takes=bodies.Mute),
    _operation("post", "incidents/{id}/comments", "Comment on an incident", takes=bodies.NewComment),
]
