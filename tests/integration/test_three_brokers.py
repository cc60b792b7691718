"""Three brokers, of which one is killed under load: every view comes out right, while it is away and when it is back."""

from pathlib import Path

import pytest

from deploy.topics import create_topics
from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish import FinishRules
from shared.topics import PRESENCE
from tests.chaos.faults import DROPPED
from tests.integration.cluster import Cluster, ReplicatedSettings
from tests.integration.failing import scene_of

pytestmark = pytest.mark.integration


def test_a_broker_of_three_is_killed_under_load_and_comes_back(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        topics = [*application(FinishRules()).topics, PRESENCE]
        create_topics(ReplicatedSettings(kafka_bootstrap=cluster.bootstrap), topics)
        with scene_of(cluster.bootstrap, tmp_path) as scene:
            slots = [scene.started() for _ in range(2)]
            # It coordinates the group, and with it transactions; and it leads partitions of every topic.
            killed = cluster.brokers[cluster.coordinator("video_views")]
            feed = scene.feed(views=150, seconds=8)
            feed.join(3)
            assert feed.is_alive()
            killed.kill()
            scene.expect_truth(seconds=120)
            scene.feed(views=60, seconds=3)
            killed.start()
            scene.expect_truth(seconds=120)
            # The new coordinator may carry out a request to join that the client has given up with the old one: then it
            # fences the member that the client is by now. A supervisor starts the slot again.
            for slot in slots:
                code = slot.terminate() if slot.is_running else slot.ended()
                assert code == 0 or DROPPED in slot.last_line(), slot.last_line()
