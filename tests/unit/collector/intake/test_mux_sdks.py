"""Mux's SDKs for Android, iOS and Roku: their lines in docs/clients.md, and what they send, to the finished row.

No such device is at hand: the bodies are stand-ins, made of the same stories as the load test's, in the shapes that the SDKs'
public sources show (docs/clients.md says what is known of each). The truth of a story is the row that must come of it.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pytest

from deploy.demo.viewers.clients_doc import CLIENTS_DOC, COLLECTOR_NAME, lines_to_paste
from loadtest.clients import mux
from loadtest.clients.wire import short_key
from loadtest.expected.truth import TIMES, SimulatedBeacon, row
from loadtest.story import Story, story_of
from services.collector.intake.post import Rules
from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import RECV_TIME_MS

LOADED_MS: Final = RECV_TIME_MS - 60_000
HOUR_MS: Final = 3_600_000
REQUEST_FIELDS: Final = {
    short_key(f"request_{name}") for name in ("start", "response_start", "response_end", "bytes_loaded")
}

Events = list[dict[str, Any]]


def text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def delta_encoded(beacons: Iterable[SimulatedBeacon], key: str) -> Events:
    """As mux-embed encodes them: but for some, each has only what changed."""
    return [beacon.fields | {"ake": key} for beacon in beacons]


def whole_and_text(beacons: Iterable[SimulatedBeacon], key: str) -> Events:
    """As Roku sends them: every event complete, every value text, the key under its former name."""
    known: dict[str, Any] = {}
    events = []
    for beacon in beacons:
        fields = known | beacon.fields
        known = {name: value for name, value in fields.items() if name not in REQUEST_FIELDS}
        del fields["ake"]
        events.append({name: text(value) for name, value in fields.items()} | {"property_ke": key})
    return events


@dataclass(frozen=True)
class Sdk:
    """How docs/clients.md describes the use of an SDK, and how that sends."""

    heading: str
    language: str
    #: Where its lines name the key.
    key: str
    encoded: Callable[[Iterable[SimulatedBeacon], str], Events]
    packed: Callable[[bytes], bytes] = bytes
    headers: tuple[tuple[str, str], ...] = ()


SDKS: Final = [
    Sdk("Mux Android", "kotlin", r'context, "(.*?)"', delta_encoded, gzip.compress, (("Content-Encoding", "gzip"),)),
    Sdk("Mux iOS", "swift", r'environmentKey: "(.*?)"', delta_encoded),
    Sdk("Mux Roku", "brightscript", r'property_key: "(.*?)"', whole_and_text),
]


def path_of(sdk: Sdk) -> str:
    """Where the SDK posts to, as the document's table has it."""
    (path,) = re.findall(rf"^\| {sdk.heading}\b[^|]*\| `POST (.*?)`", CLIENTS_DOC.read_text(), flags=re.MULTILINE)
    return path


def batches(sdk: Sdk, story: Story, key: str) -> list[bytes]:
    events = sdk.encoded(mux.beacons(story, LOADED_MS, COLLECTOR_NAME), key)
    return [sdk.packed(json.dumps({"events": events[at : at + 6]}).encode()) for at in range(0, len(events), 6)]


def rows_of(served: Served) -> dict[str, dict[str, Any]]:
    """The finished rows of all that was stored, by view."""
    driver = Driver(application(FinishRules()))
    for number, record in enumerate(served.sink.records):
        assert record.topic == topics.BEACONS.name
        driver.pipe(topics.BEACONS, record.key, record.value, at_ms=LOADED_MS + number)
    driver.advance_to(LOADED_MS + 2 * HOUR_MS)
    rows = [codec.VIEW.decode(output.value) for output in driver.outputs(topics.VIEWS) if output.value]
    assert len({found.view_id for found in rows}) == len(rows)
    return {found.view_id: msgspec.structs.asdict(found) for found in rows}


@pytest.mark.thorough
@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.heading)
async def test_what_the_sdk_sends_becomes_the_row(sdk: Sdk, served: Served) -> None:
    lines = lines_to_paste(sdk.heading, sdk.language)
    # The domain alone: the SDKs put https before it, and their own path behind.
    assert f'"{COLLECTOR_NAME}"' in lines
    (key,) = re.findall(sdk.key, lines)
    served.rules = Rules(collector_id="c-1")
    stories = [story for story in (story_of(5, number, 60) for number in range(120)) if story.player.source == "mux"][
        :30
    ]
    truths: dict[str, dict[str, Any]] = {}
    for story in stories:
        for body in batches(sdk, story, key):
            headers = {"Content-Type": "application/json", **dict(sdk.headers)}
            async with served.client.post(path_of(sdk), data=body, headers=headers) as answer:
                assert answer.status == 200
        truth = row(story, mux.beacons(story, LOADED_MS, COLLECTOR_NAME))
        if truth is not None:
            for name in TIMES:
                del truth[name]
            truths[story.player.view_id] = truth | {"customer_id": key}

    found = rows_of(served)
    assert len(truths) > 20
    assert found.keys() == truths.keys()
    for view_id, truth in truths.items():
        assert {name: found[view_id][name] for name in truth} == truth
