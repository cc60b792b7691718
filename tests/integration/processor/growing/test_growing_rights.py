"""docs/growing.md is followed on a new installation with TLS, with the documented rights alone: slots and a collector at work."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import aiohttp
import pytest

from deploy.local.paths import ROOT
from deploy.local.ports import free_port
from deploy.topics import create_topics
from shared import topics
from tests.integration.collector.collecting import Collector, answered
from tests.integration.parts.brokers import OF_VIEWS
from tests.integration.parts.failing import Scene, scene_of
from tests.integration.parts.feed import observed
from tests.integration.parts.installed import variables
from tests.integration.parts.secured import Authority, SecuredBroker, secured_broker
from tests.integration.parts.slots import wait_until
from tests.integration.processor.growing.growth import WANTED, Growth
from tests.unit.collector.intake.bodies import mux_body, mux_event

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SET = {"PLAYHEAD_BEACON_PARTITIONS": str(WANTED)}
OF_COLLECTORS = (topics.SPANS, topics.API_CALLS, topics.RECORDINGS, topics.RECEIVED)
#: They fall into partitions that they stay in and others.
VIEWS = [f"view-{number}" for number in range(16)]
EXIT_BOOT = 3


def installed(secured: SecuredBroker) -> None:
    """Users, rights and topics, as docs/security.md has them."""
    secured.make_users(["topics", "growing", "video_views", "collector"])
    granted = subprocess.run(
        [sys.executable, "-m", "deploy.rights"],
        cwd=ROOT,
        env={**os.environ, **variables(secured.broker.bootstrap)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert granted.returncode == 0, granted.stderr
    create_topics(secured.settings("topics"), [*OF_VIEWS, *OF_COLLECTORS])


def posted(collector: Collector, views: Iterable[str], event: str, seq: int) -> None:
    async def post() -> None:
        async with aiohttp.ClientSession() as client:
            events = [mux_event(xid=view, e=event, xsqno=seq) for view in views]
            assert await answered(client, collector.url, mux_body(*events)) == 200

    asyncio.run(post())


def ended(scene: Scene) -> dict[str, tuple[int, str]]:
    """By view: beacons, and why it ended."""
    return {view: (beacons, why) for view, (beacons, _, why) in observed(scene.rows.read()).items()}


def test_the_page_is_followed_with_the_documented_rights_alone(tmp_path: Path) -> None:
    secured = secured_broker(tmp_path, Authority(tmp_path))
    with secured.broker, scene_of(secured.broker.bootstrap, tmp_path) as scene:
        installed(secured)
        # A slot that gets no CPU for two seconds is at work still.
        calm = {"VIDEO_VIEWS_FINISH_SILENT_MS": "600000", "PROCESSOR_SESSION_MS": "10000"}
        slot = scene.slot(**secured.environ("video_views"), **calm)
        slot.start()
        wait_until(slot.is_ready, "the slot works")

        def collector(name: str, **environ: str) -> Collector:
            return Collector(
                secured.bootstrap, tmp_path, free_port(), name, environ=secured.environ("collector") | environ
            )

        with collector("former") as former:
            posted(former, VIEWS, "viewstart", 1)
            dry = Growth(tmp_path, secured.environ("growing"), "--dry-run")
            assert dry.ended() == 0, dry.said
            assert "1 at work, to be stopped once the state is copied: member video_views/" in dry.said
            growth = Growth(tmp_path, secured.environ("growing"))
            growth.until("now stop all slots")
            assert slot.terminate() == 0
            assert growth.ended() == 0, growth.said
            assert f"set PLAYHEAD_BEACON_PARTITIONS={WANTED} for every service" in growth.said.splitlines()[-1]
            # It goes by the former number: what is another partition's is handed on.
            posted(former, VIEWS[::2], "viewend", 2)
            slot.arm(**SET)
            slot.start()
            wait_until(slot.is_ready, "the slot works again")
            assert former.child.stop(60) == 0
        forgetful = collector("forgetful")
        forgetful.child.start()
        try:
            wait_until(lambda: not forgetful.child.is_running, "a collector with the former setting ends")
        finally:
            forgetful.child.kill()
        assert forgetful.child.exit_code == EXIT_BOOT
        assert "PLAYHEAD_BEACON_PARTITIONS" in str(forgetful.log_lines()[-1])
        with collector("restarted", **SET) as restarted:
            posted(restarted, VIEWS[1::2], "viewend", 2)
            wait_until(lambda: ended(scene) == dict.fromkeys(VIEWS, (2, "clean")), "all views end, once each")
        assert slot.terminate() == 0
