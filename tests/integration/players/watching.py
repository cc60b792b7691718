"""Chromium watches stories; what its pages saw, what they sent, and the rows that came of it."""

import json
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, Request

from services.collector.sink.records import Record
from shared import codec
from shared.schemas.beacon import Beacon
from shared.schemas.view import View
from shared.topics import BEACONS, VIEWS

#: More would take each other's time on a small machine, and players give up what takes too long.
PAGES_MAX = 4
STORIES_SECONDS_MAX = 600
#: The page's script may not have been loaded yet.
IS_DONE = "typeof saw !== 'undefined' && saw.done"
#: Chromium's own, but for the word Headless, by which it would be a bot.
USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
#: How each client's requests name their view: in the body, or (EPAS, given none) in the answer to the first one.
_VIEW_IDS = re.compile(r'"xid":"([^"]+)"|sid="([^"]+)"|"sessionId":"([^"]+)"|"view_id":"([^"]+)"')


@dataclass
class Watched:
    """One page's story."""

    story: str
    #: What the page saw: see story.js.
    saw: dict[str, Any] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    view_ids: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)


def watch(browser: Browser, stories: Sequence[str]) -> list[Watched]:
    """Opens the pages, some at a time, waits for each story's end, and closes its tab."""
    finished: list[Watched] = []
    coming, going = list(stories), list[tuple[Page, Watched]]()
    deadline = time.monotonic() + STORIES_SECONDS_MAX
    while coming or going:
        assert time.monotonic() < deadline, [watched.story for _, watched in going]
        while coming and len(going) < PAGES_MAX:
            going.append(_opened(browser, coming.pop(0)))
        for page, watched in [one for one in going if one[0].evaluate(IS_DONE)]:
            watched.saw = page.evaluate("saw")
            page.close()
            going.remove((page, watched))
            finished.append(watched)
        time.sleep(0.05)
    return finished


def _opened(browser: Browser, story: str) -> tuple[Page, Watched]:
    watched = Watched(story)
    page = browser.new_context(user_agent=USER_AGENT).new_page()
    page.on("pageerror", lambda error: watched.errors.append(str(error)))
    page.on("request", lambda request: _note_request(request, watched))
    page.on("requestfinished", lambda request: _note_answer(request, watched))
    page.goto(f"https://{story}.example.com/", wait_until="commit")
    return page, watched


def _note_request(request: Request, watched: Watched) -> None:
    if "collect.example.com" in request.url and request.method == "POST":
        body = request.post_data or ""
        watched.bodies.append(body)
        watched.view_ids |= {"".join(groups) for groups in _VIEW_IDS.findall(body)}


def _note_answer(request: Request, watched: Watched) -> None:
    if "/epas/" in request.url and '"init"' in (request.post_data or ""):
        response = request.response()
        assert response is not None
        watched.view_ids.add(response.json()["sessionId"])


class Outcome:
    """The beacons of each view as the collector stored them, and the newest row of each."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.beacons: dict[str, list[Beacon]] = defaultdict(list)
        self.rows: dict[str, View] = {}
        for record in records:
            if record.topic == BEACONS.name:
                beacon = codec.BEACON.decode(record.value)
                self.beacons[beacon.view_id].append(beacon)
            elif record.topic == VIEWS.name:
                row = codec.VIEW.decode(record.value)
                known = self.rows.get(row.view_id)
                if known is None or row.revision > known.revision:
                    self.rows[row.view_id] = row

    def lacking(self, view_ids: set[str]) -> dict[str, tuple[int, int]]:
        """The views whose newest row does not count every beacon: how many there are, and how many it counts."""
        counts = {
            view_id: (
                len({(one.seq, one.client_time_ms, one.source_event) for one in self.beacons[view_id]}),
                self.rows[view_id].beacon_count if view_id in self.rows else 0,
            )
            for view_id in view_ids
        }
        return {view_id: count for view_id, count in counts.items() if count[0] != count[1] or not count[0]}


def dumped(watched: Watched, outcome: Outcome) -> str:
    """Everything about one story, to read when an assertion fails."""
    rows = [json.loads(codec.VIEW.encode(outcome.rows[view])) for view in watched.view_ids if view in outcome.rows]
    story = {"story": watched.story, "saw": watched.saw, "rows": rows, "errors": watched.errors}
    beacons = [codec.BEACON.encode(one).decode() for view in watched.view_ids for one in outcome.beacons[view]]
    return "\n".join([json.dumps(story, indent=1), *beacons])
