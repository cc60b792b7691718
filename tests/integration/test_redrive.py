"""What an application rejected because it raised is given back to it, once it is corrected."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.broker import Broker
from shared import codec
from tests.integration.failing import Scene, scene_on
from tests.integration.feed import beacon
from tests.integration.raising_slot import PROGRAM, RAISES
from tests.integration.slots import ROOT, wait_until

pytestmark = pytest.mark.integration

AT_MS = 1_790_000_000_000


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Broker(tmp_path / "broker") as running, scene_on(running, tmp_path) as made:
        yield made


def encoded(view_id: str, seq: int, event: str, **attrs: object) -> bytes:
    return codec.BEACON.encode(beacon(view_id, seq, event, AT_MS + seq * 1000, **attrs))


def redrive(scene: Scene, *arguments: str, application: str = "video_views") -> dict[str, int]:
    """What the command says that it did."""
    ran = subprocess.run(
        [sys.executable, "-m", "services.processor", "redrive", *arguments],
        cwd=ROOT,
        env={**os.environ, "PLAYHEAD_KAFKA_BOOTSTRAP": scene.bootstrap, "PROCESSOR_APPLICATION": application},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    told: dict[str, int] = json.loads(ran.stdout.splitlines()[-1])
    return told


def test_rejected_records_are_produced_to_the_input_again_once(scene: Scene) -> None:
    slot = scene.started(program=PROGRAM)
    scene.send(b"acme:garbage", b"{garbage")
    for number in range(20):
        key, view_id = b"acme:raises-%d" % number, f"raises-{number}"
        scene.send(key, encoded(view_id, 1, "viewstart", custom_1=RAISES.decode()))
        scene.also[view_id] = (1, 0, "timeout")
    wait_until(lambda: len(scene.rejected()) == 21, "all of them are rejected")
    assert slot.terminate() == 0
    nothing = {"produced": 0, "before": 0, "rows": 0, "gone": 0}
    assert redrive(scene, "--until", "2020-01-01T00:00:00Z") == nothing
    assert redrive(scene, application="traces") == nothing
    assert redrive(scene, "--from", "2020-01-01T00:00:00Z") == nothing | {"produced": 20}
    # Again, by other arguments.
    assert redrive(scene, "--reason", "fold_failed") == nothing | {"before": 20}
    scene.started()
    scene.expect_truth()
    assert len(scene.rejected()) == 21
