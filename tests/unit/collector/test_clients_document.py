"""docs/clients.md: its snippets send what the collector takes."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from deploy.demo.viewers.clients_doc import lines_to_paste
from services.collector.intake import native
from services.collector.intake.post import Rules
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import post

TEXT = (Path(__file__).parents[3] / "docs" / "clients.md").read_text()


def test_the_native_examples_are_beacons() -> None:
    (body,) = re.findall(r"```http\nPOST /v1/beacons\?key=acme\n\n(.*?)```", TEXT, re.DOTALL)
    parsed = native.parse_beacons(post(body.encode(), key="acme"), Rules())
    assert (len(parsed.accepted), parsed.rejected) == (2, [])
    (answer,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert len(json.loads(answer)["beacons"]) == 2

    (address,) = re.findall(r'<img src="(.*?)">', TEXT)
    query = urlsplit(address).query
    parsed = native.parse_query(parse_qsl(query), post(query.encode(), key="acme"), Rules())
    assert [beacon.event for beacon in parsed.accepted] == ["viewstart"]


def test_every_address_is_a_route_of_the_collector() -> None:
    paths = {urlsplit(address).path for address in re.findall(r"https://collect\.example\.com[^'\"`]*", TEXT)}
    assert paths == {"/cmcd/acme", "/epas/acme", "/v1/beacons", "/v1/beacons.gif"}


#: What lists for ad blockers match in a path or query, gathered from their general rules.
MATCHED = [
    *("analytic", "telemetry", "track", "metric", "stat", "count", "log", "collect", "pixel", "fingerprint", "monitor"),
    *(
        "/ad",
        "ads",
        "/hit",
        "/ping",
        "/event",
        "/rum",
        "/beacon?",
        "/beacon.",
        "/beacon/",
        "/beacon-",
        "/beacons?data=",
    ),
    *("/beacons-", "/1x1", ".gif?event=", ".gif?log=", "&event=view&", "/collector", "/v1/event", "/capture", "visit"),
]


async def test_no_address_has_words_that_ad_blockers_match() -> None:
    served = Served()
    routes = {route.resource.canonical for route in served.runner.app.router.routes() if route.resource}
    assert {"/", "/v1/beacons", "/cmcd/{key}"} <= routes
    addresses = {urlsplit(address) for address in re.findall(r"https://collect\.example\.com[^'\"`]*", TEXT)}
    pasted = {f"{address.path}?{address.query}" for address in addresses}
    assert any("/v1/beacons.gif?key=" in address for address in pasted)
    assert [(url, word) for url in routes | pasted for word in MATCHED if word in url.lower()] == []


def test_the_lines_of_the_readme_are_those_of_this_document() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    (lines,) = re.findall(r"```js\n(.*?)```", readme, re.DOTALL)
    assert {urlsplit(address).path for address in re.findall(r"http://localhost:8080[^'\"]*", lines)} == {"/cmcd/acme"}
    document = TEXT.replace("collect.example.com", "localhost:8080").replace(", 'ce'", "")
    for snippet in (
        "beaconCollectionDomain: 'localhost:8080'",
        "data: { env_key: 'acme'",
        "['ps', 'e', 't', 'bc', 'rr']",
    ):
        assert snippet in lines
        assert snippet in document


#: A page without a browser: `on` has the listeners, `beacons` what was sent.
PAGE = """
const on = {}, beacons = [];
const video = { currentTime: 0, paused: true, addEventListener: (name, does) => { on[name] = does; } };
globalThis.document = { querySelector: () => video };
globalThis.addEventListener = (name, does) => { on[name] = does; };
globalThis.setInterval = () => {};
globalThis.fetch = (_, request) => { beacons.push(...JSON.parse(request.body).beacons); };
"""


def beacons_of(story: str) -> list[dict[str, Any]]:
    """What the lines for any player send in a story, in JavaScript."""
    script = f"{PAGE}{{\n{lines_to_paste('Native')}}}\n{story}\nconsole.log(JSON.stringify(beacons));"
    run = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, timeout=60, check=True
    )
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def test_a_page_that_the_browser_has_kept_begins_another_view() -> None:
    beacons = beacons_of(
        "on.pageshow({ persisted: false }); video.paused = false; on.playing(); on.pagehide();"
        "on.pageshow({ persisted: true }); on.pagehide();"
    )
    first, second = dict.fromkeys(beacon["view_id"] for beacon in beacons)
    assert [(beacon["view_id"], beacon["seq"], beacon["event"]) for beacon in beacons] == [
        *((first, seq, event) for seq, event in enumerate(("viewstart", "playing", "viewend"), 1)),
        *((second, seq, event) for seq, event in enumerate(("viewstart", "playing", "viewend"), 1)),
    ]
