"""A broker of an earlier test is given to a later one only when nothing of the former is left in it."""

from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from deploy.local.process import wait_until
from shared.topics import BEACONS, LATE
from tests.integration.parts.brokers import broker_with_topics

pytestmark = pytest.mark.integration

#: So the brokers are of a kind of their own: none rests when the test begins.
_KIND = {"background.threads": "9"}


def test_a_broker_with_a_living_member_is_given_to_nobody_and_later_without_topics_and_groups(tmp_path: Path) -> None:
    with ExitStack() as members:
        with broker_with_topics(tmp_path / "first", [BEACONS], properties=_KIND) as first:
            member = members.enter_context(
                closing(Consumer({"bootstrap.servers": first.bootstrap, "group.id": "a group"}))
            )
            member.subscribe([BEACONS.name])
            wait_until(lambda: member.poll(0.1) is None and bool(member.assignment()), 60, "the member has joined")
        with broker_with_topics(tmp_path / "second", (), properties=_KIND) as second:
            assert second is not first
            # Killed, so it does not rest.
            second.kill()
    with broker_with_topics(tmp_path / "third", [LATE], properties=_KIND) as third:
        assert third is first
        admin = AdminClient({"bootstrap.servers": third.bootstrap})
        assert {name for name in admin.list_topics(timeout=60).topics if not name.startswith("__")} == {LATE.name}
        assert admin.list_consumer_groups().result().valid == []
        third.kill()
    with broker_with_topics(tmp_path / "fourth", (), properties=_KIND) as fourth:
        assert fourth is not first
        fourth.kill()
