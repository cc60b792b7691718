"""Partitions grow on a broker with TLS, by a user and for slots that have the documented rights and no others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local.paths import ROOT
from deploy.rights import documented, grant
from deploy.topics import create_topics
from shared import topics
from shared.settings import Settings
from tests.integration.brokers import OF_VIEWS
from tests.integration.failing import scene_of
from tests.integration.secured import Authority, secured_broker
from tests.integration.slots import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

WANTED = 2 * topics.BEACONS.partitions(topics.PROFILES["laptop"])


def test_partitions_grow_with_the_documented_rights_alone(tmp_path: Path) -> None:
    secured = secured_broker(tmp_path, Authority(tmp_path))
    with secured.broker, scene_of(secured.broker.bootstrap, tmp_path) as scene:
        rights = [right for right in documented() if right.user in ("topics", "growing", "video_views")]
        secured.make_users(sorted({right.user for right in rights}))
        grant(Settings(kafka_bootstrap=secured.broker.bootstrap), rights)
        create_topics(secured.settings("topics"), OF_VIEWS)
        slot = scene.slot(**secured.environ("video_views"))
        slot.start()
        scene.feed(views=20, seconds=2).finish()
        wait_until(slot.is_ready, "the slot works")
        assert slot.terminate() == 0
        command = [sys.executable, "-m", "deploy.topics", "grow", "beacons", str(WANTED), "--processes", "1"]
        ran = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **secured.environ("growing")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        slot.arm(PLAYHEAD_BEACON_PARTITIONS=str(WANTED))
        slot.start()
        # By the former number: half of these are handed on.
        scene.feed(views=20, seconds=1)
        scene.expect_truth()
        assert slot.terminate() == 0
