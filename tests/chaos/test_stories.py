"""Stories and verdict, without a broker: calm folding agrees with the truth, and every kind of fault is seen."""

from itertools import islice
from typing import Any

import msgspec
import pytest

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.view.finish_rules import FinishRules
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import view_key
from tests.chaos.feed import Truth
from tests.chaos.stories import Story, long_story, stories
from tests.chaos.verdict import Observed, judge

RULES = FinishRules(clean_ms=1_500, ended_ms=3_000, silent_ms=4_000, paused_ms=4_000)


def observe(sample: list[Story]) -> Observed:
    """The views one after the other, through the production core."""
    driver = Driver(application(RULES))
    at_ms = 1_790_000_000_000
    for story in sample:
        for send in story.sends:
            at_ms += send.after_ms
            key = view_key(send.beacon.customer_id, send.beacon.view_id)
            driver.pipe(topics.BEACONS, key, codec.BEACON.encode(send.beacon), at_ms=at_ms)
    driver.advance_to(at_ms + 60_000)
    return Observed(
        rows=[codec.VIEW.decode(output.value) for output in driver.outputs(topics.VIEWS)],
        live=[codec.LIVE.decode(output.value) for output in driver.outputs(topics.LIVE)],
        late=len(driver.outputs(topics.LATE)),
        rejected=len(driver.outputs(topics.REJECTED)),
    )


def test_a_view_of_hours_is_right() -> None:
    story = long_story(3, 0, seconds=120.0, pace=20)
    observed = observe([story])
    assert judge(observed, truth_of([story])).wrong == []
    assert story.beacons > 3_000
    assert story.row["view_end_ms"] - story.row["view_start_ms"] > 5 * 3_600_000


def truth_of(sample: list[Story]) -> Truth:
    return Truth(
        rows={story.key: story.row for story in sample if story.row},
        beacons=sum(story.beacons for story in sample),
        copies=sum(send.is_copy for story in sample for send in story.sends),
        dropped=sum(story.beacons for story in sample if not story.row),
    )


@pytest.fixture(scope="module")
def sample() -> list[Story]:
    return list(islice(stories(3), 400))


@pytest.fixture(scope="module")
def observed(sample: list[Story]) -> Observed:
    return observe(sample)


def test_a_calm_fold_of_the_stories_is_right(sample: list[Story], observed: Observed) -> None:
    verdict = judge(observed, truth_of(sample))
    assert verdict.wrong == []
    assert verdict.is_right, verdict
    assert verdict.revisions > 0


def test_the_stories_hold_what_a_network_does(sample: list[Story]) -> None:
    assert any(not story.row for story in sample)
    assert {story.row["end_reason"] for story in sample if story.row} == {"clean", "error", "timeout"}
    assert any(story.row.get("seq_gaps") for story in sample)
    assert any(send.is_copy and send.after_ms for story in sample for send in story.sends)
    seqs = [[send.beacon.seq or 0 for send in story.sends if not send.is_copy] for story in sample]
    assert any(sequence != sorted(sequence) for sequence in seqs)


def _changed(observed: Observed, at: int, **changes: Any) -> Observed:
    rows = list(observed.rows)
    rows[at] = msgspec.structs.replace(rows[at], **changes)
    return Observed(rows, observed.live, 0, 0)


def test_the_verdict_sees_each_kind_of_fault(sample: list[Story], observed: Observed) -> None:
    truth = truth_of(sample)
    first = next(row for row in observed.rows if row.revision == 1 and row.end_reason == "clean")
    key = (first.customer_id, first.view_id)
    others = [row for row in observed.rows if (row.customer_id, row.view_id) != key]
    assert judge(Observed(others, observed.live, 0, 0), truth).missing == [key]
    assert judge(Observed([*observed.rows, first], observed.live, 0, 0), truth).doubled == [(key, 1)]
    newest = max((row for row in observed.rows if (row.customer_id, row.view_id) == key), key=lambda row: row.revision)
    wrong = judge(_changed(observed, observed.rows.index(newest), playing_ms=1), truth).wrong
    assert [(fault[0], fault[1], fault[2]) for fault in wrong] == [(key, "playing_ms", 1)]
    second = msgspec.structs.replace(newest, revision=newest.revision + 1, first_append_ms=1)
    assert judge(Observed([*observed.rows, second], observed.live, 0, 0), truth).split == [key]
    stranger = msgspec.structs.replace(newest, view_id="stranger")
    assert judge(Observed([*observed.rows, stranger], observed.live, 0, 0), truth).split == [
        (first.customer_id, "stranger")
    ]
    unfinished = [gauge for gauge in observed.live if gauge.bucket_ms < first.first_append_ms + 1]
    assert not judge(Observed(observed.rows, unfinished, 0, 0), truth).is_right
    assert judge(Observed(observed.rows, [*observed.live, observed.live[0]], 0, 0), truth).sums
    assert judge(Observed(observed.rows, observed.live, 1, 1), truth).late_or_rejected == 2
