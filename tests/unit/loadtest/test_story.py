"""Stories are repeatable, fit into their run, and a few hundred of them hold everything that can happen."""

from collections import Counter
from itertools import pairwise

import pytest

from loadtest.story import TAIL_MS, VIEW_MS_MAX, story_of

STORIES = [story_of(7, number, 60) for number in range(400)]


def test_the_same_seed_makes_the_same_stories_and_another_seed_others() -> None:
    assert [story_of(7, number, 60) for number in range(20)] == STORIES[:20]
    assert [story_of(8, number, 60) for number in range(20)] != STORIES[:20]


def test_no_two_moments_of_a_story_share_a_time() -> None:
    for story in STORIES:
        assert all(earlier.at_ms < later.at_ms for earlier, later in pairwise(story.moments))


def test_every_story_ends_within_the_run() -> None:
    assert max(story.ends_ms for story in STORIES) <= 60_000 - TAIL_MS
    assert max(story.moments[-1].at_ms for story in STORIES) <= VIEW_MS_MAX
    assert max(story_of(7, number, 12).ends_ms for number in range(100)) <= 12_000 - TAIL_MS


def test_a_run_too_short_for_a_view_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 11 s"):
        story_of(7, 0, 10)


def test_most_views_run_at_once_in_the_middle_of_the_run() -> None:
    concurrent = sum(story.arrives_ms <= 30_000 < story.ends_ms for story in STORIES)
    assert concurrent > 150


def test_everything_that_can_happen_happens() -> None:
    kinds = Counter(moment.kind for story in STORIES for moment in story.moments)
    assert set(kinds) == {
        "load",
        "start",
        "playing",
        "pause",
        "resume",
        "rebufferstart",
        "rebufferend",
        "seekstart",
        "seekend",
        "rendition",
        "warning",
        "error",
        "ended",
        "close",
        "crash",
    }
    clients = Counter(story.player.client for story in STORIES)
    assert set(clients) == {"mux-embed", "hls.js", "dash.js", "cmcd-reporter"}
    assert 0.6 < clients["mux-embed"] / len(STORIES) < 0.8
    assert {story.player.customer_id for story in STORIES} == {"acme", "globex", "initech"}
    assert {story.player.live for story in STORIES} == {True, False}
    assert any(abs(story.player.clock_skew_ms) > 3_600_000 for story in STORIES)
    assert any(moment.business_exception for story in STORIES for moment in story.moments)
