"""The part of `recordings`: two sessions as rrweb's recorder would send them, out of order and some twice; read back and compared.

A third session is recorded by rrweb's recorder in a browser: the dashboard replays it.
"""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from deploy.demo.applications.part import Part, Running, line
from deploy.demo.comparing.compare import Line
from deploy.demo.viewers.rrweb import CUSTOMER, GREETING, NAME, browser, missing, recorded_page, shown_in_replay, visit

SESSIONS: Final = ("demo-1", "demo-2")
PAYLOADS: Final = 6
#: The text of a recorded page's largest change, characters.
LARGEST_CHARS: Final = 3_000_000
#: Neighbours change places: what comes first must wait.
_ORDER: Final = (1, 0, 3, 2, 5, 4)
#: rrweb's numbers of event types: https://github.com/rrweb-io/rrweb/blob/master/packages/types/src/index.ts
_META, _CUSTOM = 4, 5
_T0_MS: Final = 1_790_000_000_000

_encode = msgspec.json.encode


def play(running: Running) -> Sequence[Line]:
    """Sends the payloads, waits until all are stored and listed, and compares the downloads with them."""
    wanted = len(SESSIONS) * PAYLOADS
    for number in _ORDER:
        for session in SESSIONS:
            _send(running, session, number)
    for session in SESSIONS:
        _send(running, session, 0)
    running.until(lambda: len(_rows(running)) >= wanted)
    rows = _rows(running)
    # A slot that has too much to do says so, and is asked again.
    are_back = running.until(lambda: all(_is_read_back(running, session, number) for session, number in _all()))
    back = wanted if are_back else sum(_is_read_back(running, session, number) for session, number in _all())
    in_order = [[row["sequence"] for row in rows if row["session_id"] == session] for session in SESSIONS]
    sizes = sum(len(_encode(_events(session, number))) for session, number in _all())
    return [
        line("recordings: payloads in the warehouse, sent once or twice", len(rows), wanted),
        line("recordings: sessions stored in order", in_order.count(list(range(PAYLOADS))), len(SESSIONS)),
        line("recordings: bytes stored", sum(row["size_bytes"] for row in rows), sizes),
        line("recordings: payloads read back as they were sent", back, wanted),
        *_in_a_browser(running),
    ]


def _in_a_browser(running: Running) -> Sequence[Line]:
    """A visitor's page is recorded by rrweb, and replayed by the dashboard."""
    lacking = missing()
    if lacking is not None:
        running.say(
            f"recordings: no page is recorded in a browser: {lacking}; `make setup-test` installs what it takes"
        )
        return []

    def stored(session: str) -> int:
        index = running.look(f"/recordings/{session}/index?customer={CUSTOMER}") or {}
        return len(index.get("payloads", []))

    with recorded_page(urlsplit(running.collector_url).port or 80) as url, browser() as chromium:
        page = chromium.new_page()
        session = visit(page, url, stored, running.until)
        if session is None:
            return [line("recordings: sessions of rrweb's recorder", 0, 1)]
        replay = f"replay?{urlencode({'customer': CUSTOMER, 'session': session})}"
        running.say(f"recordings: a visit to a page, recorded by rrweb: {running.page_url}{replay}")
        page.goto(running.page_link(f"/{replay}"))
        # Until the link has logged in.
        page.wait_for_url("**/replay?**")
        name, wanted = "recordings: what the replay of rrweb's recording shows last", (GREETING, NAME)
        if not running.until(lambda: page.evaluate("document.body.dataset.state") == "ready"):
            return [line(name, page.inner_text("#status"), wanted)]
        running.until(lambda: shown_in_replay(page) == wanted)
        return [line(name, shown_in_replay(page), wanted)]


def _all() -> list[tuple[str, int]]:
    return [(session, number) for session in SESSIONS for number in range(PAYLOADS)]


def _events(session: str, number: int) -> list[dict[str, Any]]:
    """What a recorder has gathered in ten seconds."""
    at_ms = _T0_MS + 10_000 * number
    text = "x" * (LARGEST_CHARS if number == PAYLOADS // 2 else 10_000)
    return [
        {
            "type": _META,
            "data": {"href": f"https://shop.example/{session}", "width": 800, "height": 600},
            "timestamp": at_ms,
        },
        {"type": _CUSTOM, "data": {"tag": "text", "payload": text}, "timestamp": at_ms + 1},
    ]


def _send(running: Running, session: str, number: int) -> None:
    running.post(f"/recordings/{session}?sequence={number}", _encode(_events(session, number)))


def _is_read_back(running: Running, session: str, number: int) -> bool:
    """Whether a payload comes as it was sent."""
    came: object = running.look(f"/recordings/{session}/{number}")
    return came == _events(session, number)


def _rows(running: Running) -> list[dict[str, Any]]:
    names = ", ".join(f"'{session}'" for session in SESSIONS)
    where = f"state = 'stored' AND session_id IN ({names})"
    rows = running.rows("recording_index", "session_id, sequence, size_bytes, revision", where)
    return sorted(rows, key=lambda row: (row["session_id"], row["revision"]))


PART: Final = Part("recordings", play)
