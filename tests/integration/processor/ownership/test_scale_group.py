"""The group that `bench.scale` simulates divides the partitions as slots do."""

import pytest

from bench.scale.group import Members
from deploy.local.broker import Broker
from shared import topics
from tests.integration.parts.installed import PARTITIONS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def broker_topics() -> list[topics.Topic]:
    return [topics.BEACONS]


def test_members_divide_all_partitions_and_again_as_one_comes_and_one_leaves(broker: Broker) -> None:
    members = Members(broker, PARTITIONS)
    with members.running():
        assert members.add(3) > 0
        assert sorted(members.sizes) == [1, 1, 2]
        assert members.add(1) > 0
        assert members.sizes == [1, 1, 1, 1]
        assert members.remove() > 0
        assert sorted(members.sizes) == [1, 1, 2]
