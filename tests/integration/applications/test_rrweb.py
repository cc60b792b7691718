"""rrweb's own recorder in Chromium, with the very lines of docs/recordings.md; and its own player on the replay page."""

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import web

from deploy.demo.viewers.clients_doc import RECORDINGS_DOC
from deploy.demo.viewers.rrweb import (
    CUSTOMER,
    GREETING,
    NAME,
    WAY_OUT,
    browser,
    leave_and_return,
    recorded_page,
    serving,
    shown_in_replay,
    visit,
)
from deploy.local.broker import Broker
from deploy.local.paths import RRWEB
from deploy.local.ports import free_port
from services.accounts.http.access import Routing
from services.dashboard.app import STATIC
from services.dashboard.replay import Replay
from shared.topics import Topic
from tests.integration.collector.collecting import Collector
from tests.integration.parts.brokers import OF_COLLECTOR, topics_of
from tests.integration.parts.browsing import inaccessible
from tests.integration.parts.lookup_slots import TOKEN, LookupSlot
from tests.integration.parts.slots import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (*topics_of("recordings"), *OF_COLLECTOR)


@contextmanager
def replay_page(lookups: str) -> Iterator[str]:
    """The dashboard's replay page alone."""

    def app() -> web.Application:
        made = web.Application()
        made.router.add_static("/static/", STATIC)
        Replay(lookups, TOKEN, RRWEB).add_to(Routing(made), lambda handler, *_: handler)
        return made

    with serving(app) as url:
        yield f"{url}/replay"


def index(server: LookupSlot, session: str) -> dict[str, Any]:
    status, body = server.get(f"/recordings/{session}/index?customer={CUSTOMER}")
    return dict(body) if status == 200 else {}


def until(condition: Callable[[], bool]) -> bool:
    wait_until(condition, "what the recorder sends is stored", 120)
    return True


def unpacked(content: bytes) -> bytes:
    """A payload as the page made it; what it sends on its way out is not packed."""
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


@pytest.fixture
def running(broker: Broker, tmp_path: Path) -> Iterator[tuple[int, LookupSlot]]:
    """A collector's port and a slot of recordings, whose objects are in folder `objects`."""
    port = free_port()
    with Collector(broker.bootstrap, tmp_path, port) as _:
        server = LookupSlot(
            broker, tmp_path, 0, PROCESSOR_APPLICATION="recordings", PROCESSOR_OBJECTS=str(tmp_path / "objects")
        )
        server.slot.start()
        try:
            wait_until(server.slot.is_ready, "the slot works")
            yield port, server
        finally:
            server.slot.end()


def test_a_page_is_recorded_stored_and_replayed(running: tuple[int, LookupSlot]) -> None:
    port, server = running
    with recorded_page(port) as shop, replay_page(server.url) as replay, browser() as chromium:
        errors: list[str] = []
        page = chromium.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        session = visit(page, shop, lambda name: len(index(server, name).get("payloads", [])), until)
        assert session is not None
        assert errors == []
        found = index(server, session)
        assert found["absent"] == []
        assert [payload[0] for payload in found["payloads"]] == list(range(len(found["payloads"])))
        # What the page has packed is packed still.
        assert found["payloads"][0][3:5] == ["application/json", "gzip"]
        view = f"/view?customer={CUSTOMER}&view=watched"
        page.goto(f"{replay}?{urlencode({'customer': CUSTOMER, 'session': session, 'view': view})}")
        # Polled from here: the page's policy allows no waiting script within it.
        wait_until(lambda: page.evaluate("document.body.dataset.state !== undefined"), "the replay is ready")
        assert page.evaluate("document.body.dataset.state") == "ready", page.inner_text("#status")
        ended = (GREETING, NAME)
        wait_until(lambda: shown_in_replay(page) == ended, f"the replay stands at its end: {ended}")
        assert inaccessible(page) == []
        assert page.get_by_role("link", name="Back to the view").get_attribute("href") == view
        page.evaluate("position.value = 0; position.dispatchEvent(new Event('input'))")
        greeting = (
            "document.querySelector('.replayer-wrapper iframe').contentDocument"
            ".querySelector('#greeting')?.textContent === 'Before'"
        )
        wait_until(lambda: page.evaluate(greeting), "the replay stands at its beginning")
        assert errors == []
        page.goto(f"{replay}?customer={CUSTOMER}&session=none")
        wait_until(lambda: page.evaluate("document.body.dataset.state === 'failed'"), "the replay has failed")
        assert "There is no such session" in page.inner_text("#status")
        assert page.get_by_role("link", name="Views").get_attribute("href") == f"/views?customer={CUSTOMER}"


def test_a_page_that_returns_from_the_back_forward_cache_loses_nothing(
    running: tuple[int, LookupSlot], tmp_path: Path
) -> None:
    port, server = running
    with recorded_page(port) as shop, browser() as chromium:
        page = chromium.new_page()
        sessions: set[str] = set()
        page.on("request", lambda request: sessions.update(re.findall(r"/recordings/([^?]+)", request.url)))
        page.goto(shop)
        leave_and_return(page)
        page.fill("#name", NAME)
        page.click("#greet")

        def objects() -> list[Path]:
            """All that is stored; what is being written has another name."""
            files = [file for session in sessions for file in (tmp_path / "objects" / CUSTOMER / session).glob("*")]
            return [file for file in files if "#" not in file.name]

        def all_is_stored() -> bool:
            # Only a call of its own lets the page's events through.
            page.wait_for_timeout(200)
            text = b"".join(unpacked(file.read_bytes()) for file in objects())
            return GREETING.encode() in text and WAY_OUT.encode() in text

        wait_until(all_is_stored, "what came last is stored, and what was typed on the way out", 120)
        (session,) = sessions
        # An object is there before the commit that lists it.
        wait_until(lambda: len(index(server, session).get("payloads", [])) >= len(objects()), "every object is listed")
        found = index(server, session)
        assert found["absent"] == []
        assert [payload[0] for payload in found["payloads"]] == list(range(len(found["payloads"])))


def test_the_package_is_the_one_that_the_document_names() -> None:
    version = json.loads((RRWEB / "package.json").read_text())["version"]
    assert f"npm `rrweb` {version}" in RECORDINGS_DOC.read_text()
