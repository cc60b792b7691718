"""Real players in a real browser, with the very lines of docs/clients.md: each view ends up as a row that says what its page saw.

Some pages play side by side. `<client>-slow`: play, stall, the other rendition, seek, close the tab. `<client>-missing`: the
segments after the first seconds are 404. What a page saw is noted by the page itself (players/story.js).
"""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from deploy.local.ports import free_port
from shared.schemas.view import View
from shared.topics import BEACONS, REJECTED, VIEWS
from tests.integration.collector.collecting import Collector, reading
from tests.integration.parts.brokers import OF_COLLECTOR, OF_VIEWS, broker_with_topics
from tests.integration.parts.slots import Slot, wait_until
from tests.integration.players.media import SECONDS, made_media
from tests.integration.players.seen import Seen, seen_until
from tests.integration.players.site import Site
from tests.integration.players.watching import Outcome, Watched, dumped, watch

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

CHROMIUM_ARGS = ["--no-sandbox", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required"]
#: Silence longer than between two beacons of a story, so that a view seldom finishes before its tab is closed.
FINISH = {
    "VIDEO_VIEWS_FINISH_CLEAN_MS": "1000",
    "VIDEO_VIEWS_FINISH_ENDED_MS": "3000",
    "VIDEO_VIEWS_FINISH_SILENT_MS": "8000",
    "VIDEO_VIEWS_FINISH_PAUSED_MS": "8000",
}
CLIENTS = ("mux", "hls", "dash", "shaka", "epas")
STORIES = [
    *(f"{client}-slow" for client in (*CLIENTS, "native", "muxplayer")),
    *(f"{client}-missing" for client in CLIENTS),
]
SOURCES = {"mux": "mux", "muxplayer": "mux", "epas": "epas", "native": "native"}
#: Name, software and version as far as a client sends them.
PLAYERS = {
    "mux": ("My player", "HTML5 Video Element", None),
    "muxplayer": ("My player", "mux-player", "3.14.0"),
    "native": ("My player", None, None),
}
ROWS_SECONDS_MAX = 150.0
#: How far a row's times may be from the page's, for each stall: a player looks at its clock a little later than the page does.
SLACK_MS = 1_000
#: mux-embed finds a stall when the playhead has stood for a second, and counts that second as played.
MUX_SLACK_MS = 2_500


class Results:
    """All stories, and what came of them."""

    def __init__(self, watched: list[Watched], outcome: Outcome, rejected: list[bytes]) -> None:
        self.watched = {one.story: one for one in watched}
        self.outcome = outcome
        self.rejected = rejected

    def row(self, story: str) -> View:
        (view_id,) = self.watched[story].view_ids
        return self.outcome.rows[view_id]

    def sent_an_end(self, story: str) -> bool:
        """Whether the closed tab's last beacon arrived."""
        (view_id,) = self.watched[story].view_ids
        return any(one.event == "viewend" for one in self.outcome.beacons[view_id])

    def has_sent_first_frame(self, story: str) -> bool:
        """Whether the client sent the beacon of the first frame."""
        (view_id,) = self.watched[story].view_ids
        before = itertools.takewhile(lambda one: one.event != "rebufferstart", self.outcome.beacons[view_id])
        return any(one.event == "playing" for one in before)

    def seen(self, story: str) -> Seen:
        """What the page saw until the last beacon that has a state; what followed nobody could know."""
        (view_id,) = self.watched[story].view_ids
        sent = [one for one in self.outcome.beacons[view_id] if one.event != "request"]
        return seen_until(self.watched[story].saw, max(one.client_time_ms for one in sent))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """Every story, played once."""
    folder = tmp_path_factory.mktemp("players")
    media = made_media()
    with broker_with_topics(folder / "broker", [*OF_VIEWS, *OF_COLLECTOR]) as broker:
        slot = Slot(broker.bootstrap, folder, 0, **FINISH)
        slot.start()
        port = free_port()
        try:
            with (
                Collector(broker.bootstrap, folder, port),
                Site(folder, media, port) as site,
                reading(broker.bootstrap, BEACONS.name, VIEWS.name, REJECTED.name) as reader,
            ):
                wait_until(slot.is_ready, "the slot is ready")
                with sync_playwright() as playwright:
                    chromium = playwright.chromium.launch(
                        executable_path="/usr/bin/chromium", args=[*CHROMIUM_ARGS, *site.chromium_args]
                    )
                    watched = watch(chromium, STORIES)
                    view_ids = set().union(*(one.view_ids for one in watched))
                    try:
                        reader.until(lambda records: not Outcome(records).lacking(view_ids), ROWS_SECONDS_MAX)
                    except AssertionError as late:
                        raise AssertionError(f"{late}; {Outcome(reader.records).lacking(view_ids)}") from late
                    chromium.close()
                for one in watched:
                    one.saw = site.saw_later.get(one.story, one.saw)
                rejected = [one.value for one in reader.records if one.topic == REJECTED.name]
                yield Results(watched, Outcome(reader.records), rejected)
        finally:
            slot.end()


@pytest.fixture
def explain(results: Results, request: pytest.FixtureRequest) -> Iterator[None]:
    """Prints the whole story when its test fails."""
    yield
    story = request.node.callspec.params["story"]
    print(dumped(results.watched[story], results.outcome))


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.usefixtures("explain")
def test_a_page_is_one_view_of_a_known_viewer(results: Results, story: str) -> None:
    watched, client = results.watched[story], story.partition("-")[0]
    assert (watched.saw["failed"], watched.errors) == (None, [])
    row = results.row(story)
    assert row.customer_id == "acme"
    assert row.source == SOURCES.get(client, "cmcd")
    assert (row.video_id, row.view_epoch) == ("my-video", 1)
    assert (row.browser, row.os, row.is_bot) == ("Chrome", "Linux", False)
    assert (row.seq_gaps, row.late_count, row.truncated) == (0, 0, False)
    assert row.stream_type == (None if client in ("epas", "native") else "vod")
    assert (row.player_name, row.player_software, row.player_version) == PLAYERS.get(client, (None, None, None))
    if row.source == "mux":
        assert row.page_url == f"https://{story}.example.com/"
        assert row.source_url == "https://media.example.com/my-video/master.m3u8"
        assert row.video_duration_ms == SECONDS * 1_000
        assert row.player_width is not None
        assert row.player_width >= 320


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.usefixtures("explain")
def test_a_row_has_the_times_that_the_page_saw(results: Results, story: str) -> None:
    row, seen = results.row(story), results.seen(story)
    slack_ms = (MUX_SLACK_MS if row.source == "mux" else SLACK_MS) * (1 + seen.rebuffer_count)
    if row.source == "epas" and not results.has_sent_first_frame(story):
        # The page played before the SDK had its session: what came shows that it did, not when.
        assert (row.startup_ms, row.startup_unknown) == (None, "first_frame_lost")
        assert (row.startup_ms_max or 0) >= 1
        return
    assert row.startup_ms is not None
    # A muted video that plays by itself may have its first frame in the very millisecond in which it is started.
    assert (0 if row.source == "mux" else 1) <= row.startup_ms <= seen.startup_ms + SLACK_MS
    assert row.playing_ms <= seen.playing_ms + slack_ms
    assert row.rebuffer_ms <= seen.rebuffer_ms + slack_ms
    assert row.watch_ms + slack_ms >= row.playing_ms + row.rebuffer_ms
    if story != "shaka-missing":
        # Shaka reports `failed` while what it has loaded still plays, and then reports no more waiting.
        assert row.playing_ms >= seen.playing_ms - slack_ms
        assert row.rebuffer_ms >= seen.rebuffer_ms - slack_ms
        assert row.rebuffer_count >= 1
    if row.source != "mux":
        # mux-embed goes by the playhead, which may stand for a moment without the element waiting.
        assert row.rebuffer_count <= seen.rebuffer_count


@pytest.mark.parametrize("story", [story for story in STORIES if story.endswith("-slow")])
@pytest.mark.usefixtures("explain")
def test_a_view_that_is_stalled_switched_sought_and_closed(results: Results, story: str) -> None:
    row, seen, client = results.row(story), results.seen(story), story.partition("-")[0]
    assert row.rebuffer_ms >= 1_500
    # Shaka seeks by itself to show another rendition at once, and does not always report it.
    assert 1 <= row.seek_count <= seen.seek_count
    assert row.seek_count == seen.seek_count or client == "shaka"
    if row.seek_count == seen.seek_count:
        assert row.seek_ms == pytest.approx(seen.seek_ms, abs=SLACK_MS * seen.seek_count)
    if results.sent_an_end(story):
        assert (row.end_reason, row.view_dropped, row.complete) == ("clean", False, True)
        assert row.max_playhead_ms >= 20_000
    else:
        assert (row.end_reason, row.view_dropped, row.complete) == ("timeout", True, False)
    assert (row.playback_failed, row.startup_failed, row.ebvs, row.error_code) == (False, False, False, None)
    if client not in ("native", "shaka"):
        # Shaka reports only changes that it made by itself.
        assert row.rendition_up + row.rendition_down >= 1
    if client != "native":
        assert row.avg_bitrate_bps is not None
        assert 90_000 <= row.avg_bitrate_bps <= 600_000


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ("mux-missing", {"error_code": "networkError", "error_message": "fragLoadError"}),
        ("hls-missing", {"error_code": "fragLoadError", "error_message": None, "end_reason": "error"}),
        ("dash-missing", {"error_code": "27", "error_message": None, "end_reason": "error"}),
        # It reports that there was one, not which.
        ("shaka-missing", {"error_code": None, "error_message": None, "end_reason": "error"}),
        ("epas-missing", {"error_code": "fragLoadError", "error_context": "networkError", "end_reason": "clean"}),
    ],
)
@pytest.mark.usefixtures("explain")
def test_a_view_whose_segments_are_missing_has_failed(results: Results, story: str, expected: dict[str, Any]) -> None:
    row = results.row(story)
    assert {name: getattr(row, name) for name in expected} == expected
    assert (row.playback_failed, row.startup_failed, row.ebvs) == (True, False, False)
    if row.source == "mux":
        assert row.end_reason == ("clean" if results.sent_an_end(story) else "error")
    assert row.seek_count == 0
    assert row.score_success == 0


@pytest.mark.parametrize(
    "story", [story for story in STORIES if story.partition("-")[0] in ("mux", "hls", "dash", "shaka")]
)
@pytest.mark.usefixtures("explain")
def test_requests_are_counted(results: Results, story: str) -> None:
    row = results.row(story)
    (view_id,) = results.watched[story].view_ids
    requests = {one.seq: one for one in results.outcome.beacons[view_id] if one.event == "request"}
    failed = [
        one for one in requests.values() if one.source_event == "requestfailed" or one.attrs.get("rc", 200) >= 400
    ]
    assert row.req_count == len(requests) >= 5
    assert row.req_failed == len(failed)
    assert row.req_time_ms is not None
    if story in ("mux-missing", "dash-missing"):
        # hls.js and Shaka report in CMCD answered requests alone.
        assert failed
    assert (row.ttfb_max_ms or 0) <= row.req_time_ms


def test_a_closed_tab_sends_an_end_where_its_client_can(results: Results) -> None:
    said = {story.partition("-")[0] for story in STORIES if story.endswith("-slow") and results.sent_an_end(story)}
    # A browser gives a closing tab half a second: on a busy machine not every one makes it.
    assert said
    assert said <= {"mux", "muxplayer", "native"}


def test_nothing_that_players_send_is_rejected(results: Results) -> None:
    assert results.rejected == []
