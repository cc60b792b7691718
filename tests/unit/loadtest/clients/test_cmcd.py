"""What a story looks like as CMCD v2 event mode, against expectations by hand."""

import re

import pytest

from loadtest.clients import cmcd
from loadtest.story import Moment
from tests.unit.loadtest.stories import EVENTFUL, PLAYER, story

LOADED_MS = 1_700_000_000_000


def keys(line: str) -> dict[str, str]:
    """The record's keys: commas within quotes and lists do not separate."""
    return dict(re.findall(r'([a-z]+)=("[^"]*"|\([^)]*\)|[^,]*)', line))


def test_a_record_is_one_sorted_dictionary_line() -> None:
    records = cmcd.beacons(story(*EVENTFUL, client="hls.js"), LOADED_MS)
    assert records[1].line == (
        f'cid="movie-1",e=ps,mtp=(25500),sf=h,sid="{PLAYER.view_id}",sn=1,st=v,sta=s,ts={LOADED_MS + 1_000},v=2'
    )
    assert records[3].line == (
        f'bl=(1200;v),br=(900;v 128;a),cid="movie-1",e=ps,mtp=(25500),pb=(900),sf=h,sid="{PLAYER.view_id}",sn=3,st=v,'
        f"sta=p,ts={LOADED_MS + 1_500},v=2"
    )


def test_the_states_of_a_story_follow_each_other_as_the_player_reports_them() -> None:
    records = [keys(record.line) for record in cmcd.beacons(story(*EVENTFUL, client="hls.js"), LOADED_MS)]
    assert [(int(r["ts"]) - LOADED_MS, r["e"], r.get("sta")) for r in records] == [
        (0, "t", None),
        (1_000, "ps", "s"),
        (1_000, "bc", "s"),
        (1_500, "ps", "p"),
        (4_500, "ps", "r"),
        (6_500, "ps", "p"),
        (8_500, "bc", "p"),
        (9_500, "ps", "k"),
        (9_700, "ps", "p"),
        (10_000, "t", "p"),
        (11_700, "ps", "a"),
        (16_700, "ps", "p"),
        (20_000, "t", "p"),
        (28_700, "ps", "e"),
    ]
    assert [int(r["sn"]) for r in records] == list(range(14))


def test_only_the_reporter_sends_preloading_totals_and_its_end() -> None:
    records = [keys(record.line) for record in cmcd.beacons(story(*EVENTFUL, client="cmcd-reporter"), LOADED_MS)]
    assert [r["sta"] for r in (records[1], records[-1])] == ["d", "q"]
    assert (records[-1]["bsa"], records[-1]["bsda"], records[-1]["pt"]) == ("(1)", "(2000)", "74000")
    assert [r["msd"] for r in records if "msd" in r] == ["500"]


@pytest.mark.parametrize(("client", "code"), [("hls.js", '("2003")'), ("dash.js", "2003")])
def test_a_fatal_error_has_its_code_in_the_state_and_in_the_error(client: str, code: str) -> None:
    view = story(*EVENTFUL[:3], Moment(3_000, "error", code="2003"), Moment(4_000, "crash"), client=client)
    state, error = (keys(record.line) for record in cmcd.beacons(view, LOADED_MS)[-2:])
    assert (state["e"], state["sta"], state["ec"]) == ("ps", "f", code)
    assert (error["e"], error["sta"], error["ec"]) == ("e", "f", code)


def test_a_request_is_dated_when_it_was_begun_and_has_the_bitrate_of_its_object() -> None:
    view = story(*EVENTFUL, client="hls.js", reports_requests=True)
    record = next(r for r in cmcd.beacons(view, LOADED_MS) if r.event == "rr")
    assert not record.measures
    assert record.at_ms == 1_170
    record_keys = keys(record.line)
    assert int(record_keys["ts"]) == LOADED_MS + 1_050
    assert (record_keys["br"], record_keys["pb"]) == ("(1800;v 128;a)", "(900)")


def test_the_players_libraries_end_a_body_with_a_line_feed_and_the_newest_does_not() -> None:
    for client, end in (("hls.js", b"v=2\n"), ("dash.js", b"v=2\n"), ("cmcd-reporter", b"v=2")):
        view = story(*EVENTFUL, client=client)
        records = cmcd.beacons(view, LOADED_MS)[:2]
        body = cmcd.body(view, records)
        assert body.endswith(end)
        assert body.decode().rstrip("\n").split("\n") == [record.line for record in records]
