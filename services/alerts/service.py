"""Alerting: what people do with rules, receivers and incidents, each in one transaction with its row of the audit log."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

import psycopg

from services.accounts.core.customer_scope import CustomerScope
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody, RuleWrong, check
from services.alerts.store import deliveries, incidents, receivers, rules
from services.alerts.store.deliveries import Delivery
from services.alerts.store.incidents import Comment, StoredIncident
from services.alerts.store.receivers import Receiver
from services.alerts.store.rules import StoredRule
from services.alerts.targets import check_words, checked_target
from services.rim.database.pool import Postgres

COMMENT_CHARS_MAX: Final = 4_000
MUTE_HOURS_MAX: Final = 24 * 30

T = TypeVar("T")


class NotThere(LookupError):
    """There is no such thing, or none that the asker may see."""


class Alerting:
    """Over the accounts' database. Everything raises as `Postgres.ask` does."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    async def rules(
        self,
        scope: CustomerScope,
        customer_id: str | None,
        *,
        after: tuple[str, datetime, str] | None = None,
        rows_max: int,
    ) -> list[StoredRule]:
        """The rules of a customer, or of all in the scope, by customer, last change and id; after one of these.

        Raises `NotThere` for a customer out of the scope.
        """
        wanted = _customers(scope, customer_id)
        all_but = sorted(scope.all_but or ()) if wanted is None else ()
        listed = partial(rules.rules_of, all_but=all_but, after=after, rows_max=rows_max)
        return await self._ask(listed, customer_ids=wanted)

    async def rule(self, scope: CustomerScope, rule_id: str) -> StoredRule:
        """One rule. Raises `NotThere`."""
        found = await self._ask(rules.find_rule, rule_id=_uuid(rule_id))
        if found is None or not scope.has(found.customer_id):
            raise NotThere
        return found

    async def versions(
        self, scope: CustomerScope, rule_id: str, *, before: int | None, rows_max: int
    ) -> list[StoredRule]:
        """The versions of a rule, the newest first, those before one of this number. Raises `NotThere`."""
        found = await self._ask(rules.versions_of, rule_id=_uuid(rule_id), before=before, rows_max=rows_max)
        if not found or not scope.has(found[0].customer_id):
            raise NotThere
        return found

    async def add_rule(self, scope: CustomerScope, body: RuleBody, actor: Actor) -> str:
        """Adds a rule; its id. Raises `NotThere`, `RuleWrong`, `TooManyRules`."""
        await self.check_rule(scope, body, actor)
        return await self._ask(rules.add_rule, body=body, actor=actor)

    async def check_rule(self, scope: CustomerScope, body: RuleBody, actor: Actor) -> None:
        """Whether the actor may have this rule. Raises `NotThere`, `RuleWrong`."""
        if not scope.has(body.customer):
            raise NotThere
        check(body)
        found = await self._ask(receivers.find_receivers, receiver_ids=[_uuid(one) for one in body.receivers])
        if sum(one.organisation_id == actor.organisation_id for one in found) != len(body.receivers):
            raise RuleWrong("receivers", "there is no such receiver")

    async def change_rule(
        self, scope: CustomerScope, rule_id: str, body: RuleBody, actor: Actor, *, version: int
    ) -> int:  # fmt: skip
        """Changes a rule; its new version. Raises `NotThere`, `RuleWrong`, `RuleChanged`."""
        await self.check_rule(scope, body, actor)
        changed = await self._ask(rules.change_rule, rule_id=_uuid(rule_id), body=body, actor=actor, version=version)
        if changed is None:
            raise NotThere
        return changed

    async def delete_rule(self, scope: CustomerScope, rule_id: str, actor: Actor) -> None:
        """Deletes a rule. Raises `NotThere`."""
        found = await self.rule(scope, rule_id)
        if not await self._ask(rules.delete_rule, rule=found, actor=actor):
            raise NotThere

    async def receivers(
        self, organisation_id: str, *, after: tuple[str, str] | None = None, rows_max: int = receivers.RECEIVERS_MAX
    ) -> list[Receiver]:
        """The receivers of an organisation by name and id, after one of these."""
        listed = partial(receivers.receivers_of, after=after, rows_max=rows_max)
        return await self._ask(listed, organisation_id=organisation_id)

    async def add_receiver(
        self, actor: Actor, *, name: str, kind: str, target: Mapping[str, Any], template: str | None
    ) -> str:  # fmt: skip
        """Adds a receiver; its id. Raises `ReceiverWrong`, `TooManyReceivers`."""
        checked = checked_target(kind, target)
        check_words(name, template)
        add = partial(receivers.add_receiver, name=name.strip(), kind=kind, target=checked, template=template)
        return await self._ask(add, actor=actor)

    async def change_receiver(
        self, receiver_id: str, actor: Actor, *, name: str, target: Mapping[str, Any] | None, template: str | None
    ) -> None:  # fmt: skip
        """Changes a receiver; without `target` its address stays. Raises `NotThere`, `ReceiverWrong`."""
        found = await self._ask(receivers.find_receivers, receiver_ids=[_uuid(receiver_id)])
        if not found or found[0].organisation_id != actor.organisation_id:
            raise NotThere
        checked = found[0].target if target is None else checked_target(found[0].kind, target)
        check_words(name, template)
        change = partial(receivers.change_receiver, name=name.strip(), target=checked, template=template)
        if not await self._ask(change, receiver_id=receiver_id, actor=actor):
            raise NotThere

    async def delete_receiver(self, receiver_id: str, actor: Actor) -> None:
        """Deletes a receiver. Raises `NotThere`."""
        if not await self._ask(receivers.delete_receiver, receiver_id=_uuid(receiver_id), actor=actor):
            raise NotThere

    async def test_receiver(self, receiver_id: str, actor: Actor, *, number: str) -> str:
        """Sends a test; the id of its delivery. Raises `NotThere`, `TooManyTests`."""
        found = await self._ask(receivers.find_receivers, receiver_ids=[_uuid(receiver_id)])
        if not found or found[0].organisation_id != actor.organisation_id:
            raise NotThere
        delivery_id = f"msg_test_{number}"
        await self._ask(deliveries.add_test, receiver=found[0], delivery_id=delivery_id, actor=actor)
        return delivery_id

    async def deliveries(
        self, organisation_id: str, state: str | None, *, after: tuple[datetime, str] | None, rows_max: int
    ) -> list[Delivery]:
        """Messages to an organisation's receivers, the newest first, after one that was made then and has this id."""
        newest = partial(deliveries.newest, state=state, after=after, rows_max=rows_max)
        return await self._ask(newest, organisation_id=organisation_id)

    async def deliver_again(self, delivery_id: str, actor: Actor) -> None:
        """Tries a dead message again. Raises `NotThere`, `Overtaken`."""
        if not await self._ask(deliveries.again, delivery_id=delivery_id, actor=actor):
            raise NotThere

    async def incidents(
        self,
        scope: CustomerScope,
        customer_id: str | None,
        *,
        only_open: bool,
        before: datetime | None = None,
        after: tuple[datetime, str] | None = None,
        rows_max: int,
    ) -> list[StoredIncident]:
        """Incidents, the newest first: those that opened before a time, after one that opened then and has this id.

        Raises `NotThere` for a customer out of the scope.
        """
        wanted = _customers(scope, customer_id)
        all_but = sorted(scope.all_but or ()) if wanted is None else ()
        newest = partial(
            incidents.newest, all_but=all_but, only_open=only_open, before=before, after=after, rows_max=rows_max
        )
        return await self._ask(newest, customer_ids=wanted)

    async def incident(self, scope: CustomerScope, incident_id: str) -> StoredIncident:
        """One incident. Raises `NotThere`."""
        found = await self._ask(incidents.find_incident, incident_id=incident_id)
        if found is None or not scope.has(found.customer_id):
            raise NotThere
        return found

    async def story(
        self, incident_id: str, organisation_id: str
    ) -> tuple[list[dict[str, Any]], list[Comment], list[Delivery]]:
        """The history of an incident: its changes, comments, and messages to the organisation's receivers."""

        async def read(
            connection: psycopg.AsyncConnection,
        ) -> tuple[list[dict[str, Any]], list[Comment], list[Delivery]]:
            return (
                await incidents.changes_of(connection, incident_id),
                await incidents.comments_of(connection, incident_id),
                await deliveries.of_incident(connection, incident_id, organisation_id),
            )

        return await self._postgres.ask(read)

    async def acknowledge(self, scope: CustomerScope, incident_id: str, actor: Actor) -> None:
        """Records that a person takes care of it. Raises `NotThere`."""
        found = await self.incident(scope, incident_id)
        await self._ask(incidents.acknowledge, incident=found, actor=actor)

    async def mute(self, scope: CustomerScope, incident_id: str, hours: int, actor: Actor, *, now_ms: int) -> None:
        """No message for so many hours but that of the end; 0: messages again. Raises `NotThere`."""
        found = await self.incident(scope, incident_id)
        until = datetime.fromtimestamp(now_ms / 1_000, UTC) + timedelta(hours=hours) if hours else None
        await self._ask(incidents.mute, incident=found, until=until, actor=actor)

    async def comment(self, scope: CustomerScope, incident_id: str, text: str, actor: Actor) -> bool:
        """Adds a comment; False where there are as many as there may be. Raises `NotThere`."""
        found = await self.incident(scope, incident_id)
        return await self._ask(incidents.comment, incident=found, text=text, actor=actor)

    async def _ask(self, read: Callable[..., Awaitable[T]], **values: Any) -> T:
        return await self._postgres.ask(partial(read, **values))


def _customers(scope: CustomerScope, customer_id: str | None) -> Sequence[str] | None:
    if customer_id is not None:
        if not scope.has(customer_id):
            raise NotThere
        return [customer_id]
    return sorted(scope.own) if scope.all_but is None else None


def _uuid(text: str) -> str:
    """Raises `NotThere` for what is no id."""
    plain = text.replace("-", "")
    if len(text) != 36 or len(plain) != 32 or not all(one in "0123456789abcdef" for one in plain):
        raise NotThere
    return text
