"""`/v1/alerts/…`: HTTP to and from `Alerting`. Every answer is cut to the customers that the asker may see."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from aiohttp import web

from services.accounts.core.pages import MEANT, CursorWrong
from services.accounts.core.principal import Principal
from services.accounts.core.roles import Permission
from services.accounts.http.access import METRICS, Routing
from services.accounts.http.guard import principal_of
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody, RuleWrong
from services.alerts.core.suggested import suggested
from services.alerts.http import bodies
from services.alerts.http.answers import comment_of, delivery_of, incident_of, json_answer, receiver_of, rule_of
from services.alerts.http.operations import OPERATIONS
from services.alerts.http.pages import cut, key, page_of, place_of, receiver_place_of, rule_place_of
from services.alerts.http.requests import asked_of, body_of, id_of, time_of, wrong
from services.alerts.service import COMMENT_CHARS_MAX, MUTE_HOURS_MAX, Alerting, NotThere
from services.alerts.store.deliveries import Overtaken, TooManyTests
from services.alerts.store.receivers import TooManyReceivers
from services.alerts.store.rules import RuleChanged, TooManyRules
from services.alerts.targets import ReceiverWrong
from services.alerts.trying.running import TrialTooLong, Trying
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.problems import TOO_MANY_QUESTIONS, Refused, problem_response
from services.rim.turns.question_limits import InTurn, TooManyQuestions
from shared.http.peer import Network, client_address
from shared.http.problems import Fault, Problem
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.beacon import CUSTOMER_ID

Handler = Callable[["AlertRoutes", web.Request], Awaitable[web.Response]]


class AlertRoutes:
    """The routes; `proxies` are the networks whose X-Forwarded-For is read. `trying` runs trials of rules.

    `turns` are those of organisations at the database of `alerting`, if it has other work too.
    """

    def __init__(
        self,
        alerting: Alerting,
        trying: Trying,
        *,
        now_ms: Callable[[], int],
        proxies: Sequence[Network] = (),
        turns: InTurn | None = None,
    ) -> None:
        self._turns = turns
        self._alerting = alerting
        self._trying = trying
        self._now_ms = now_ms
        self._proxies = tuple(proxies)

    def add_to(self, routing: Routing) -> None:
        """Adds the routes. All need the right to read metrics; those that change something ask for more themselves."""
        for operation in OPERATIONS:
            handler = self._answering(_HANDLERS[operation.name])
            if self._turns is not None and operation.name not in _OF_TRIALS:
                handler = _in_turn(handler, self._turns)
            routing.add(operation.method.upper(), operation.path, handler, METRICS, name=operation.name)

    # Rules.

    async def rules(self, request: web.Request) -> web.Response:
        """The rules of a customer, or of all."""
        asked = asked_of(request, bodies.AskedRules)
        wanted = page_of(request, asked)
        found = await self._alerting.rules(
            principal_of(request).scope, asked.customer, after=rule_place_of(wanted), rows_max=wanted.rows_max
        )
        page, after = wanted.cut(found, lambda one: f"{one.customer_id} {key(one.changed_at, one.id)}")
        return json_answer(bodies.RuleList(rules=[rule_of(one) for one in page], next=after))

    async def rule(self, request: web.Request) -> web.Response:
        """One rule."""
        return json_answer(rule_of(await self._alerting.rule(principal_of(request).scope, id_of(request))))

    async def versions(self, request: web.Request) -> web.Response:
        """All versions of a rule."""
        wanted = page_of(request, asked_of(request, bodies.AskedPage))
        found = await self._alerting.versions(
            principal_of(request).scope, id_of(request), before=wanted.number, rows_max=wanted.rows_max
        )
        page, after = wanted.cut(found, lambda one: str(one.version))
        return json_answer(bodies.RuleList(rules=[rule_of(one) for one in page], next=after))

    async def make_rule(self, request: web.Request) -> web.Response:
        """Adds a rule."""
        principal, actor = self._editor(request)
        body = await body_of(request, RuleBody)
        return json_answer(bodies.Made(id=await self._alerting.add_rule(principal.scope, body, actor)), status=201)

    async def try_rule(self, request: web.Request) -> web.Response:
        """The incidents that a rule would have found, before it is saved."""
        principal, actor = self._editor(request)
        body = await body_of(request, RuleBody)
        await self._alerting.check_rule(principal.scope, body, actor)
        return json_answer(await self._trying.run(body, principal.organisation_id))

    async def suggested(self, request: web.Request) -> web.Response:
        """Rules that an environment should have."""
        customer_id = asked_of(request, bodies.AskedSuggested).customer
        if not CUSTOMER_ID.fullmatch(customer_id) or not principal_of(request).scope.has(customer_id):
            raise NotThere
        return json_answer(bodies.SuggestedRules(rules=suggested(customer_id)))

    async def change_rule(self, request: web.Request) -> web.Response:
        """Changes a rule."""
        principal, actor = self._editor(request)
        body = await body_of(request, bodies.RuleChange)
        version = await self._alerting.change_rule(
            principal.scope, id_of(request), body.rule, actor, version=body.version
        )
        return json_answer(bodies.Made(id=id_of(request), version=version))

    async def delete_rule(self, request: web.Request) -> web.Response:
        """Deletes a rule."""
        principal, actor = self._editor(request)
        await self._alerting.delete_rule(principal.scope, id_of(request), actor)
        return web.Response(status=204)

    # Receivers and messages.

    async def receivers(self, request: web.Request) -> web.Response:
        """The receivers of the organisation."""
        principal = principal_of(request)
        _check_whole(principal)
        wanted = page_of(request, asked_of(request, bodies.AskedPage))
        found = await self._alerting.receivers(
            principal.organisation_id, after=receiver_place_of(wanted), rows_max=wanted.rows_max
        )
        page, after = wanted.cut(found, lambda one: f"{one.id} {one.name}")
        return json_answer(bodies.ReceiverList(receivers=[receiver_of(one) for one in page], next=after))

    async def make_receiver(self, request: web.Request) -> web.Response:
        """Adds a receiver."""
        _, actor = self._editor(request, of_all=True)
        body = await body_of(request, bodies.NewReceiver)
        made = await self._alerting.add_receiver(
            actor, name=body.name, kind=body.kind, target=body.target, template=body.template
        )
        return json_answer(bodies.Made(id=made), status=201)

    async def change_receiver(self, request: web.Request) -> web.Response:
        """Changes a receiver."""
        _, actor = self._editor(request, of_all=True)
        body = await body_of(request, bodies.ReceiverChange)
        await self._alerting.change_receiver(
            id_of(request), actor, name=body.name, target=body.target, template=body.template
        )
        return web.Response(status=204)

    async def delete_receiver(self, request: web.Request) -> web.Response:
        """Deletes a receiver."""
        _, actor = self._editor(request, of_all=True)
        await self._alerting.delete_receiver(id_of(request), actor)
        return web.Response(status=204)

    async def test_receiver(self, request: web.Request) -> web.Response:
        """Sends a test to a receiver."""
        _, actor = self._editor(request, of_all=True)
        delivery_id = await self._alerting.test_receiver(id_of(request), actor, number=secrets.token_hex(12))
        return json_answer(bodies.Made(id=delivery_id), status=201)

    async def deliveries(self, request: web.Request) -> web.Response:
        """Messages to the organisation's receivers."""
        asked = asked_of(request, bodies.AskedDeliveries)
        principal = principal_of(request)
        _check_whole(principal)
        wanted = page_of(request, asked)
        found = await self._alerting.deliveries(
            principal.organisation_id, asked.state, after=place_of(wanted), rows_max=wanted.rows_max
        )
        page, after = cut(wanted, found, lambda one: (one.made_at, one.id))
        return json_answer(bodies.DeliveryList(deliveries=[delivery_of(one) for one in page], next=after))

    async def deliver_again(self, request: web.Request) -> web.Response:
        """Tries a dead message again."""
        _, actor = self._editor(request, of_all=True)
        await self._alerting.deliver_again(id_of(request), actor)
        return web.Response(status=204)

    # Incidents.

    async def incidents(self, request: web.Request) -> web.Response:
        """Incidents, the newest first."""
        asked = asked_of(request, bodies.AskedIncidents)
        before = None if asked.before_ms is None else time_of(asked.before_ms)
        wanted = page_of(request, asked)
        found = await self._alerting.incidents(
            principal_of(request).scope,
            asked.customer,
            only_open=asked.state == "open",
            before=before,
            after=place_of(wanted),
            rows_max=wanted.rows_max,
        )
        page, after = cut(wanted, found, lambda one: (one.opened_at, one.id))
        return json_answer(bodies.IncidentList(incidents=[incident_of(one) for one in page], next=after))

    async def incident(self, request: web.Request) -> web.Response:
        """One incident with all that it went through."""
        principal = principal_of(request)
        found = await self._alerting.incident(principal.scope, id_of(request))
        changes, comments, sent = await self._alerting.story(found.id, principal.organisation_id)
        return json_answer(
            bodies.IncidentStory(
                incident=incident_of(found),
                changes=msgspec.convert(changes, list[AlertEvent]),
                comments=[comment_of(one) for one in comments],
                # They name receivers, which are of all customers.
                deliveries=[delivery_of(one) for one in sent if principal.scope.is_whole],
            )
        )

    async def acknowledge(self, request: web.Request) -> web.Response:
        """Records that a person takes care of an incident."""
        principal, actor = self._editor(request)
        await self._alerting.acknowledge(principal.scope, id_of(request), actor)
        return web.Response(status=204)

    async def mute(self, request: web.Request) -> web.Response:
        """No messages of an incident for some hours."""
        principal, actor = self._editor(request)
        body = await body_of(request, bodies.Mute)
        if not 0 <= body.hours <= MUTE_HOURS_MAX:
            raise wrong("hours", f"hours are 0 to {MUTE_HOURS_MAX}")
        await self._alerting.mute(principal.scope, id_of(request), body.hours, actor, now_ms=self._now_ms())
        return web.Response(status=204)

    async def comment(self, request: web.Request) -> web.Response:
        """Adds a comment to an incident."""
        principal, actor = self._editor(request)
        text = (await body_of(request, bodies.NewComment)).text.strip()
        if not 0 < len(text) <= COMMENT_CHARS_MAX or "\0" in text:
            raise wrong("text", f"a comment has 1 to {COMMENT_CHARS_MAX} characters")
        if not await self._alerting.comment(principal.scope, id_of(request), text, actor):
            raise Refused(Problem(409, "An incident has no more comments", "comments-full"))
        return web.Response(status=204)

    def _editor(self, request: web.Request, *, of_all: bool = False) -> tuple[Principal, Actor]:
        """Who changes something: a person who may edit, or a token that may manage; `of_all`: what all customers share."""
        principal = principal_of(request)
        if of_all:
            _check_whole(principal)
        if not (principal.may(Permission.EDIT) or principal.may(Permission.MANAGE)):
            raise Refused(Problem(403, "This needs the permission edit, or manage", "permission"))
        address = client_address(request.remote or "", request.headers.getall("X-Forwarded-For", []), self._proxies)
        shown = address[:64] if address and address.isascii() and address.isprintable() else None
        return principal, Actor.of(principal, shown)

    def _answering(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
        """`handler`, whose errors are problems."""

        async def answer(request: web.Request) -> web.Response:
            try:
                return await handler(self, request)
            except Refused as refused:
                return problem_response(refused.problem)
            except RuleWrong as error:
                return problem_response(wrong(error.member, str(error)).problem)
            except ReceiverWrong as error:
                return problem_response(wrong("target", str(error)).problem)
            except TooManyQuestions:
                busy = Problem(429, "Too many trials at a time", "too-many-trials")
                return problem_response(busy, retry_seconds=10)
            except TooManyTests:
                return problem_response(_TESTED, retry_seconds=600)
            except tuple(_PROBLEMS) as error:
                return problem_response(next(one for kind, one in _PROBLEMS.items() if isinstance(error, kind)))

        return answer


def _in_turn(
    handler: Callable[[web.Request], Awaitable[web.Response]], turns: InTurn
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """`handler`, in a turn of the caller's organisation."""

    async def answer(request: web.Request) -> web.Response:
        try:
            async with turns.of(principal_of(request).organisation_id):
                return await handler(request)
        except TooManyQuestions:
            return problem_response(TOO_MANY_QUESTIONS, retry_seconds=1)

    return answer


def _check_whole(principal: Principal) -> None:
    """Receivers have messages of all customers of an organisation: a token for some of these may not use them."""
    if not principal.scope.is_whole:
        raise Refused(Problem(403, "A token for some customers has no business with receivers", "permission"))


_TESTED: Final = Problem(429, "The organisation has sent as many tests within an hour as it may", "too-many-tests")
#: They read another database, and have turns of their own.
_OF_TRIALS: Final = frozenset({"post-alerts-rules-trial", "alerts-rules-suggested"})
#: What a handler may raise that has one answer.
_PROBLEMS: Final[dict[type[Exception], Problem]] = {
    CursorWrong: Problem(400, "A parameter is wrong", "parameter", errors=[Fault(MEANT, parameter="cursor")]),
    NotThere: Problem(404, "There is no such thing", "unknown"),
    RuleChanged: Problem(409, "Somebody else has changed the rule: read it again", "version"),
    TooManyRules: Problem(409, "The environment has as many rules as it may", "rules-full"),
    TooManyReceivers: Problem(409, "The organisation has as many receivers as it may", "receivers-full"),
    Overtaken: Problem(409, "The receiver has a later message of this incident", "overtaken"),
    TrialTooLong: Problem(504, "The trial took too long: try fewer slices", "trial-too-long"),
    PostgresAway: Problem(503, "Postgres does not answer", "postgres-away"),
    NotPublished: Problem(503, "The database has no alerts yet", "alerts-not-there"),
    QueryRefused: Problem(502, "Postgres refuses the query", "postgres-refuses"),
}
_HANDLERS: Final[dict[str, Handler]] = {
    "alerts-rules": AlertRoutes.rules,
    "post-alerts-rules": AlertRoutes.make_rule,
    "post-alerts-rules-trial": AlertRoutes.try_rule,
    "alerts-rules-suggested": AlertRoutes.suggested,
    "alerts-rules-id": AlertRoutes.rule,
    "put-alerts-rules-id": AlertRoutes.change_rule,
    "delete-alerts-rules-id": AlertRoutes.delete_rule,
    "alerts-rules-id-versions": AlertRoutes.versions,
    "alerts-receivers": AlertRoutes.receivers,
    "post-alerts-receivers": AlertRoutes.make_receiver,
    "put-alerts-receivers-id": AlertRoutes.change_receiver,
    "delete-alerts-receivers-id": AlertRoutes.delete_receiver,
    "post-alerts-receivers-id-test": AlertRoutes.test_receiver,
    "alerts-deliveries": AlertRoutes.deliveries,
    "post-alerts-deliveries-id-again": AlertRoutes.deliver_again,
    "alerts-incidents": AlertRoutes.incidents,
    "alerts-incidents-id": AlertRoutes.incident,
    "post-alerts-incidents-id-acknowledge": AlertRoutes.acknowledge,
    "post-alerts-incidents-id-mute": AlertRoutes.mute,
    "post-alerts-incidents-id-comments": AlertRoutes.comment,
}
