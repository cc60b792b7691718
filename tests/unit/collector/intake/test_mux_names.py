"""Short field names: the tables' words, unknown words, integers, and what cannot be spelled out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.collector.intake.mux.names import NAMES_REMEMBERED_MAX, FullNames, full_name, key_in
from services.collector.intake.mux.words import FIRST_WORDS, LATER_WORDS
from services.collector.intake.post import InvalidInput
from tests.unit.collector.intake.bodies import mux_body, mux_event

_LETTER = {word: letter for letter, word in FIRST_WORDS.items()}
_LETTERS = {word: letters for letters, word in LATER_WORDS.items()}


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("ake", "env_key"),
        ("xid", "view_id"),
        ("e", "event"),
        ("xsqno", "view_sequence_number"),
        ("psqno", "player_sequence_number"),
        ("uti", "viewer_time"),
        ("pphti", "player_playhead_time"),
        ("xwati", "view_watch_time"),
        ("xtitofifr", "view_time_to_first_frame"),
        ("xpntimscv", "view_playing_time_ms_cumulative"),
        ("vsobi", "video_source_bitrate"),
        ("perbzez", "player_error_business_exception"),
        ("mvrid", "mux_viewer_id"),
        ("msara", "mux_sample_rate"),
        ("wur", "page_url"),
        ("sst", "session_start"),
    ],
)
def test_a_name_is_spelled_out_word_by_word(short: str, full: str) -> None:
    assert full_name(short) == full


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("c1", "custom_1"),
        ("c20", "custom_20"),
        ("x_stall_co", "view_stall_count"),
        ("x_two__new_", "view_two_new"),
        ("property_ke", "property_key"),
        ("drm_ty", "drm_type"),
        ("view_id", "view_id"),
    ],
)
def test_integers_and_unknown_words_stand_as_they_are(short: str, full: str) -> None:
    assert full_name(short) == full


@pytest.mark.parametrize("short", ["", "zz", "x!", "x_open", "x__", "xq", "hello", "hello_", "hello_world", "_", "é"])
def test_a_name_that_cannot_be_spelled_out_stays_raw(short: str) -> None:
    assert full_name(short) == short


@given(st.sampled_from(sorted(_LETTER)), st.lists(st.sampled_from(sorted(_LETTERS)), max_size=6))
def test_every_name_of_known_words_comes_back(first: str, later: list[str]) -> None:
    short = _LETTER[first] + "".join(_LETTERS[word] for word in later)
    assert full_name(short) == "_".join([first, *later])


@given(st.text(max_size=30))
def test_no_name_is_too_strange(short: str) -> None:
    assert full_name(short) or short == ""


def test_only_so_many_names_are_remembered() -> None:
    names = FullNames()
    for number in range(NAMES_REMEMBERED_MAX + 100):
        assert names.spelled_out({f"c{number}": 1, "e": 2}) == {f"custom_{number}": 1, "event": 2}
    assert NAMES_REMEMBERED_MAX // 2 <= len(names) <= NAMES_REMEMBERED_MAX


def test_the_key_of_a_body_is_found_at_its_beginning() -> None:
    assert key_in(mux_body(mux_event(ake="acme-web"))) == "acme-web"
    assert key_in(b'{"events": [{"property_ke" : "acme"}]}') == "acme"
    assert key_in(b'{"events": [{"ake": "no key"}, {"ak') == ""


def test_a_name_longer_than_any_field_is_refused() -> None:
    with pytest.raises(InvalidInput) as invalid:
        FullNames().spelled_out({"c" + "1" * 200: 1})
    assert invalid.value.reason == "too_large"
