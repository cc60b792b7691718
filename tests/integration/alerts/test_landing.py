"""Changes of incidents on a real Postgres: what is landed, and whom it notifies."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

import msgspec
import psycopg
import pytest

from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from services.alerts.store import deliveries, incidents, rules
from services.alerts.store.deliveries import Claimed, Overtaken, Room
from services.alerts.store.rules import RulesUnread
from shared.schemas.alerts.event import AlertEvent
from tests.integration.alerts.alerting import T0, alerting, asked
from tests.unit.alerts.events import EVIDENCE, SUSPECT, event

pytestmark = pytest.mark.integration

T = TypeVar("T")
RULE: dict[str, Any] = {
    "customer": "acme", "name": "High", "metric": "rebuffering", "condition": "threshold", "threshold": 0.05, "receivers": [],
}  # fmt: skip
INCIDENT: Final = event().incident_id
HOUR_MS: Final = 3_600_000
#: A Monday far from now, at 01:00 in UTC, when nobody is notified for an hour.
QUIET_MS: Final = T0 + 5_200 * 7 * 24 * HOUR_MS + HOUR_MS
QUIET: Final = {"spans": [{"from_minute": 60, "to_minute": 120, "days": [0]}]}


class Story:
    """A rule with receivers, and the changes of its incident."""

    def __init__(self, made: Alerting, actor: Actor, rule: str, receivers: list[str]) -> None:
        self.made, self.actor, self.rule, self.receivers = made, actor, rule, receivers

    async def ask(self, work: Callable[..., Awaitable[T]], **values: Any) -> T:
        return await self.made._ask(work, **values)

    async def land(self, change: str, revision: int, **others: Any) -> None:
        """A change lands as it is made, or at `now_ms`."""
        now_ms = others.pop("now_ms", T0)
        one = event(change, revision, **{"rule_id": self.rule, "at_ms": T0} | others)
        assert await self.ask(incidents.land, event=one, now_ms=now_ms)

    async def claimed(self, room: Room | None = None) -> list[Claimed]:
        """The messages that are sent now."""
        return await self.ask(deliveries.claim, room=room or Room(100, 100, 100, {}, {}), lease_seconds=60)

    async def sent(self) -> None:
        """Every message that is due is delivered."""
        for one in await self.claimed():
            await self.ask(deliveries.delivered, delivery_id=one.id)

    async def mute(self) -> None:
        """The incident is muted from now on."""
        found = await self.made.incident(EVERYTHING, INCIDENT)
        until = found.opened_at.replace(year=2100)
        await self.ask(incidents.mute, incident=found, until=until, actor=self.actor)

    async def states(self) -> list[str]:
        """What became of the messages, in order."""
        assert self.actor.organisation_id is not None
        return [one.state for one in (await self.made.story(INCIDENT, self.actor.organisation_id))[2]]


def happens(dsn: str, work: Callable[[Story], Awaitable[None]], *, receivers: int = 1, **others: Any) -> None:
    """What happens to an incident of a rule with so many receivers."""

    async def make(made: Alerting, actor: Actor) -> None:
        target = {"routing_key": "k" * 32}
        named = [
            await made.add_receiver(actor, name=f"r{number}", kind="pagerduty", target=target, template=None)
            for number in range(receivers)
        ]
        body = msgspec.convert(RULE | {"receivers": named} | others, RuleBody)
        await work(Story(made, actor, await made.add_rule(EVERYTHING, body, actor), named))

    alerting(dsn, make)


def stored(dsn: str, change: str) -> None:
    """A later version has written rules."""
    asked(dsn, f"UPDATE alerts.rules SET body = {change} RETURNING 1")


def test_a_slice_with_a_zero_character_is_landed_with_a_blank(dsn: str) -> None:
    """Postgres refused the change, the service ended, and read it again at each start: nobody got a message any more."""
    title = {"video_title": "x\0y"}

    async def work(story: Story) -> None:
        slices, suspects = (
            [msgspec.structs.replace(EVIDENCE, slice=title)],
            [msgspec.structs.replace(SUSPECT, slice=title)],
        )
        await story.land("opened", 1, slices=slices, suspects=suspects)

    happens(dsn, work)
    found = asked(dsn, "SELECT event->'slices'->0->'slice', event->'suspects'->0->'slice' FROM alerts.incidents")
    assert found == [({"video_title": "x y"},) * 2]


def test_a_rule_of_a_later_version_is_published_and_notifies(dsn: str) -> None:
    """The dashboard is upgraded first: rules that it saved ended the service for everybody."""

    async def work(story: Story) -> None:
        stored(
            dsn,
            """jsonb_set(body || '{"new": 1}', '{quiet}', '{"new": 1, "spans": [
            {"from_minute": 0, "to_minute": 1, "days": [6], "new": 1}]}')""",
        )
        published = await story.ask(rules.lock_unpublished)
        assert published is not None
        assert [one.metric for one in published.rules] == ["rebuffering"]
        await story.land("opened", 1)
        assert await story.states() == ["waiting"]

    happens(dsn, work)


def test_a_rule_that_cannot_be_read_holds_up_its_own_environment_alone(dsn: str) -> None:
    async def work(story: Story) -> None:
        stored(dsn, """body || '{"metric": "seeks"}'""")
        with pytest.raises(RulesUnread) as raised:
            await story.ask(rules.lock_unpublished)
        assert raised.value.unread == ("acme", 1)
        unread = [raised.value.unread]
        assert await story.ask(rules.lock_unpublished, unread=unread) is None
        other = msgspec.convert(RULE | {"customer": "globex"}, RuleBody)
        await story.made.add_rule(EVERYTHING, other, story.actor)
        found = await story.ask(rules.lock_unpublished, unread=unread)
        assert found is not None
        assert found.customer_id == "globex"
        # Whom it notifies is known. It can be deleted, and then the others of the environment are published.
        await story.land("opened", 1)
        assert await story.states() == ["waiting"]
        await story.made.delete_rule(EVERYTHING, story.rule, story.actor)
        await story.ask(rules.set_published, rules=found)
        published = await story.ask(rules.lock_unpublished, unread=unread)
        assert published is not None
        assert (published.customer_id, published.version, published.rules) == ("acme", 2, [])

    happens(dsn, work)


def test_the_end_of_a_muted_incident_goes_to_those_who_had_its_opening(dsn: str) -> None:
    """An alert of PagerDuty stayed open for ever: its trigger was sent, and its resolve was skipped."""

    async def work(story: Story) -> None:
        await story.land("opened", 1)
        await story.sent()
        await story.mute()
        await story.land("updated", 2)
        await story.land("closed", 3)
        assert await story.states() == ["delivered", "skipped", "waiting"]
        # The end stays, also where the mute comes after it.
        await story.mute()
        assert await story.states() == ["delivered", "skipped", "waiting"]

    happens(dsn, work)


def test_a_mute_ends_further_attempts_too(dsn: str) -> None:
    async def work(story: Story) -> None:
        await story.land("opened", 1)
        (one,) = await story.claimed()
        await story.ask(deliveries.failed, delivery_id=one.id, problem="no answer", wait_seconds=60)
        await story.mute()
        assert await story.states() == ["skipped"]
        # The attempt without an answer may have come.
        await story.land("closed", 2)
        assert await story.states() == ["skipped", "waiting"]

    happens(dsn, work)


def test_what_arrives_while_it_is_muted_has_arrived(dsn: str) -> None:
    async def work(story: Story) -> None:
        await story.land("opened", 1)
        (one,) = await story.claimed()
        await story.mute()
        await story.ask(deliveries.delivered, delivery_id=one.id)
        assert await story.states() == ["delivered"]

    happens(dsn, work)


def test_a_receiver_without_a_message_of_the_opening_gets_none_of_the_end(dsn: str) -> None:
    async def work(story: Story) -> None:
        await story.land("opened", 1, now_ms=QUIET_MS)
        await story.land("closed", 2, now_ms=QUIET_MS)
        assert await story.states() == ["skipped", "skipped"]

    happens(dsn, work, quiet=QUIET)


def test_a_change_that_lands_late_waits_for_the_end_of_quiet_hours_that_began_meanwhile(dsn: str) -> None:
    async def work(story: Story) -> None:
        await story.land("opened", 1, at_ms=QUIET_MS - HOUR_MS, now_ms=QUIET_MS)

    happens(dsn, work, quiet=QUIET)
    due = asked(dsn, "SELECT (1000 * extract(epoch FROM due_at))::bigint FROM alerts.deliveries")
    assert due == [(QUIET_MS + HOUR_MS,)]


def test_an_opening_and_its_end_that_land_at_once_are_both_sent_whatever_clock_the_process_has(dsn: str) -> None:
    async def work(story: Story) -> None:
        ahead_ms = round(time.time() * 1_000) + HOUR_MS
        await story.land("opened", 1, now_ms=ahead_ms)
        await story.land("closed", 2, now_ms=ahead_ms)
        assert await story.states() == ["waiting", "waiting"]

    happens(dsn, work)


def test_messages_of_an_open_incident_are_kept_so_that_its_end_is_sent(dsn: str) -> None:
    async def work(story: Story) -> None:
        await story.land("opened", 1)
        await story.sent()
        old = "UPDATE alerts.deliveries SET ended_at = now() - interval '31 days' RETURNING 1"
        asked(dsn, old)
        await story.ask(deliveries.clean)
        await story.land("closed", 2)
        assert await story.states() == ["delivered", "waiting"]
        await story.sent()
        asked(dsn, old)
        await story.ask(deliveries.clean)
        assert await story.states() == []

    happens(dsn, work)


def test_a_change_takes_as_many_statements_for_many_receivers_as_for_one(dsn: str) -> None:
    """200 incidents that end at once, each with 20 receivers, took longer than a question may: none of them ever landed."""
    counts: list[int] = []

    async def work(story: Story) -> None:
        await story.land("opened", 1)
        await story.sent()
        await story.ask(partial(counted, counts), one=event("closed", 2, rule_id=story.rule, at_ms=T0))
        assert await story.states() == ["delivered"] * len(story.receivers) + ["waiting"] * len(story.receivers)

    happens(dsn, work, receivers=20)
    asked(dsn, "DELETE FROM alerts.incidents RETURNING 1")
    asked(dsn, "DELETE FROM alerts.deliveries RETURNING 1")
    happens(dsn, work)
    assert counts[0] == counts[1] <= 5


async def counted(counts: list[int], connection: psycopg.AsyncConnection, one: AlertEvent) -> None:
    """Lands a change, and counts the statements that it takes."""

    class Counting:
        made = 0

        async def execute(self, *given: Any) -> Any:
            self.made += 1
            return await connection.execute(*given)

    counting = Counting()
    assert await incidents.land(cast(psycopg.AsyncConnection, counting), one, now_ms=T0)
    counts.append(counting.made)


def test_a_dead_message_is_not_tried_again_behind_a_later_one(dsn: str) -> None:
    """The trigger of an opening came after its resolve: the alert stayed open."""

    async def work(story: Story) -> None:
        await story.land("opened", 1)
        (opening,) = await story.claimed()
        await story.ask(deliveries.failed, delivery_id=opening.id, problem="no answer", wait_seconds=None)
        await story.made.deliver_again(opening.id, story.actor)
        (opening,) = await story.claimed()
        await story.ask(deliveries.failed, delivery_id=opening.id, problem="no answer", wait_seconds=None)
        await story.land("closed", 2)
        await story.sent()
        with pytest.raises(Overtaken):
            await story.made.deliver_again(opening.id, story.actor)
        assert await story.states() == ["dead", "delivered"]

    happens(dsn, work)


def test_what_is_under_way_counts_to_what_a_receiver_and_an_organisation_may_have(dsn: str) -> None:
    async def work(story: Story) -> None:
        for number in range(10):
            await story.land("opened", 1, incident_id=f"{number:024}")
        first, second = story.receivers
        organisation = story.actor.organisation_id
        assert organisation is not None
        many = Room(rows=100, of_receiver=4, of_organisation=100, receivers={first: 3}, organisations={organisation: 3})
        assert Counter(one.receiver_id for one in await story.claimed(many)) == {first: 1, second: 4}
        few = Room(
            rows=100, of_receiver=100, of_organisation=12, receivers={first: 11}, organisations={organisation: 11}
        )
        assert len(await story.claimed(few)) == 1
        full = Room(rows=100, of_receiver=4, of_organisation=100, receivers={first: 4, second: 4}, organisations={})
        assert await story.claimed(full) == []

    happens(dsn, work, receivers=2)
