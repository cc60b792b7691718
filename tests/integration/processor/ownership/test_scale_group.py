"""The group that `bench.scale` simulates divides the partitions as slots do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench.scale.group import Members
from deploy.local.broker import Broker
from shared import topics
from tests.integration.parts.brokers import broker_with_topics

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


PROFILE: Final = "laptop"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_with_topics(tmp_path / "broker", [topics.BEACONS], profile=PROFILE) as running:
        yield running


def test_members_divide_all_partitions_and_again_as_one_comes_and_one_leaves(broker: Broker) -> None:
    members = Members(broker, topics.BEACONS.partitions(topics.PROFILES[PROFILE]))
    with members.running():
        assert members.add(3) > 0
        assert sorted(members.sizes) == [2, 3, 3]
        assert members.add(1) > 0
        assert members.sizes == [2, 2, 2, 2]
        assert members.remove() > 0
        assert sorted(members.sizes) == [2, 3, 3]
