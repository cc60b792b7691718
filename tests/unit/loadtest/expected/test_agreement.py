"""The truth of a story and the row that collector and processor make of its beacons are the same: two ways, one result."""

from random import Random
from typing import Any

import msgspec
import pytest

from loadtest.clients import cmcd, mux
from loadtest.expected.truth import TIMES, SimulatedBeacon, row
from loadtest.story import Story, story_of
from services.collector.intake.cmcd import cmcd as cmcd_intake
from services.collector.intake.mux import mux as mux_intake
from services.collector.intake.post import Post, Rules
from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from shared.schemas.beacon import Beacon

LOADED_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def posts(view: Story, delivered: list[SimulatedBeacon], rng: Random) -> list[list[SimulatedBeacon]]:
    """The delivered beacons in POSTs of a few, some sent twice, in any order."""
    parts = []
    left = list(delivered)
    while left:
        size = rng.randint(1, 5)
        parts.append(left[:size])
        left = left[size:]
    parts += [part for part in parts if rng.random() < 0.2]
    rng.shuffle(parts)
    return parts


def received(view: Story, part: list[SimulatedBeacon]) -> list[Beacon]:
    post = Post(origin="/", body=b"", recv_time_ms=LOADED_MS + 60_000, key=view.player.customer_id)
    if view.player.source == "mux":
        body = mux.envelope(part, LOADED_MS, None)
        parsed = mux_intake.parse_beacons(msgspec.structs.replace(post, body=body, key=""), Rules())
    else:
        body = cmcd.body(view, part)
        parsed = cmcd_intake.parse_records(msgspec.structs.replace(post, body=body), Rules())
    assert parsed.rejected == []
    return parsed.accepted


def folded(view: Story, delivered: list[SimulatedBeacon], rng: Random) -> dict[str, Any] | None:
    driver = Driver(application(FinishRules()))
    key = view_key(view.player.customer_id, view.player.view_id)
    at_ms = LOADED_MS
    for part in posts(view, delivered, rng):
        for beacon in received(view, part):
            at_ms += 10
            driver.pipe(topics.BEACONS, key, codec.BEACON.encode(beacon), at_ms=at_ms)
    driver.advance_to(at_ms + 2 * HOUR_MS)
    rows = [codec.VIEW.decode(output.value) for output in driver.outputs(topics.VIEWS) if output.value]
    assert len(rows) <= 1
    return msgspec.structs.asdict(rows[0]) if rows else None


@pytest.mark.thorough
@pytest.mark.parametrize("client", ["mux-embed", "hls.js", "dash.js", "cmcd-reporter"])
def test_the_row_is_the_truth_however_much_was_delivered_and_in_any_order(client: str) -> None:
    rng = Random(client)
    stories = [view for view in (story_of(11, number, 60) for number in range(250)) if view.player.client == client][
        :25
    ]
    assert len(stories) > 10
    for view in stories:
        emit = mux.beacons(view, LOADED_MS, "localhost") if client == "mux-embed" else cmcd.beacons(view, LOADED_MS)
        for count in {len(emit), rng.randint(1, len(emit))}:
            truth = row(view, emit[:count])
            found = folded(view, emit[:count], rng)
            if truth is None:
                assert found is None
                continue
            for name in TIMES:
                del truth[name]
            assert found is not None
            assert {name: found[name] for name in truth} == truth, view
