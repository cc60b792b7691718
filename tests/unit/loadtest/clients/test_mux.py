"""What a story looks like on the wire of mux-embed, against expectations by hand and a capture of the real SDK."""

import json
from pathlib import Path
from typing import Any

from loadtest.clients import mux
from loadtest.clients.wire import short_key
from tests.unit.loadtest.stories import EVENTFUL, story

CAPTURE = Path(__file__).parents[3] / "fixtures" / "mux-embed-ok.json"
LOADED_MS = 1_700_000_000_000


def captured_events() -> list[dict[str, Any]]:
    posts = json.loads(CAPTURE.read_text())
    return [event for post in posts for event in post["body"]["events"]]


def test_keys_are_shortened_as_the_sdk_does() -> None:
    for full, short in {
        "view_watch_time": "xwati",
        "view_time_to_first_frame": "xtitofifr",
        "view_playing_time_ms_cumulative": "xpntimscv",
        "env_key": "ake",
        "viewer_time": "uti",
        "custom_1": "c1",
        "video_source_is_live": "vsoisli",
        "player_error_business_exception": "perbzez",
        "player_unheard_of": "p_unheard__of_",
        "unheard_time": "unheard_ti",
    }.items():
        assert short_key(full) == short


def test_the_events_of_a_story_come_when_the_sdk_would_send_them() -> None:
    beacons = mux.beacons(story(*EVENTFUL), LOADED_MS, "localhost:8080")
    assert [(b.seq, b.at_ms, b.event) for b in beacons] == [
        (1, 0, "networkchange"),
        (2, 0, "playerready"),
        (3, 1_000, "viewstart"),
        (4, 1_000, "renditionchange"),
        (5, 1_000, "play"),
        (6, 1_500, "playing"),
        (7, 4_500, "rebufferstart"),
        (8, 6_500, "rebufferend"),
        (9, 8_500, "renditionchange"),
        (10, 9_500, "seeking"),
        (11, 9_700, "seeked"),
        (12, 11_700, "pause"),
        (13, 16_700, "play"),
        (14, 16_700, "playing"),
        # 10 s after the last event while playing; none came in the pause.
        (15, 26_700, "hb"),
        (16, 28_700, "pause"),
        (17, 28_700, "ended"),
        (18, 29_000, "viewend"),
    ]
    assert [b.event for b in beacons if b.is_urgent] == ["viewstart", "ended", "viewend"]


def test_an_event_carries_what_changed_and_the_always_list_and_nothing_else() -> None:
    view = story(*EVENTFUL, name="embed")
    rebufferend = mux.beacons(view, LOADED_MS, "localhost:8080")[7]
    assert rebufferend.fields == {
        "mapve": "2.1",
        "pinid": rebufferend.fields["pinid"],
        "bdm": "localhost:8080",
        "pphti": 3_000,
        "uti": LOADED_MS + 6_500,
        "ake": "acme",
        "vid": "movie-1",
        "xid": view.player.view_id,
        "xpntimscv": 3_000,
        "sex": LOADED_MS + 6_500 + 1_500_000,
        "xwati": 5_500,
        "xredu": 2_000,
        "xrefq": 1 / 5_500,
        "xrepe": 2_000 / 5_500,
        "xsqno": 8,
        "psqno": 8,
        "e": "rebufferend",
    }


def test_viewend_alone_holds_the_whole_view() -> None:
    last = mux.beacons(story(*EVENTFUL), LOADED_MS, "localhost:8080")[-1].fields
    expected = {
        "xwati": 22_700,
        "xtitofifr": 500,
        "xreco": 1,
        "xredu": 2_000,
        "xskco": 1,
        "xskdu": 200,
        "vsobi": 1_800_000,
    }
    assert {key: last[key] for key in expected} == expected
    assert {"pnm", "mvrid", "vsoisli", "vdn", "c1"} <= last.keys()


def test_keys_of_urls_come_last() -> None:
    first = mux.beacons(story(*EVENTFUL), LOADED_MS, "localhost:8080")[0].fields
    assert list(first)[-2:] == ["vsour", "wur"]


def test_what_every_event_carries_is_what_every_event_of_the_real_sdk_carries() -> None:
    def common(events: list[dict[str, Any]]) -> set[str]:
        return set.intersection(*(set(event) for event in events))

    ours = [b.fields for b in mux.beacons(story(*EVENTFUL, reports_requests=True), LOADED_MS, "localhost:8080")]
    assert common(ours) == common(captured_events())


def test_the_fields_of_the_full_events_are_known_to_the_real_sdk() -> None:
    captured = {event["e"]: event for event in captured_events()}
    beacons = mux.beacons(story(*EVENTFUL), LOADED_MS, "localhost:8080")
    for ours in (b.fields for b in beacons if b.event in ("viewstart", "viewend")):
        assert set(ours) - set(captured["viewend"]) == set()
        real = captured["viewend"]
        for key in set(ours) & set(real) - {"vsodu"}:
            assert isinstance(ours[key], (int, float) if isinstance(real[key], float) else type(real[key])), key


def test_the_envelope_holds_the_round_trip_from_the_second_post_on() -> None:
    beacons = mux.beacons(story(*EVENTFUL), LOADED_MS, "localhost:8080")[:2]
    first, second = (json.loads(mux.envelope(beacons, 17, rtt)) for rtt in (None, 5))
    assert first == {"metadata": {"transmission_timestamp": 17}, "events": [b.fields for b in beacons]}
    assert second["metadata"] == {"transmission_timestamp": 17, "rtt_ms": 5}
    assert set(first["metadata"]) == set(json.loads(CAPTURE.read_text())[0]["body"]["metadata"])
