"""When settled numbers were sent: few spans that hold every one of them."""

import random

import pytest

from services.processor.applications.video_views.view.order.spans import SPANS_MAX, Span, may_be_sent, note_sent


@pytest.mark.parametrize("numbers", [1, 7, 8, 100, 5_000])
@pytest.mark.parametrize("lost", [0.0, 0.3])
def test_each_number_may_have_been_sent_when_it_was_and_not_long_before_or_after(numbers: int, lost: float) -> None:
    random_ = random.Random(numbers)
    spans: list[Span] = []
    sent = {seq: seq * 10_000 for seq in range(numbers) if not seq or random_.random() >= lost}
    for seq, at_ms in sent.items():
        note_sent(spans, seq, at_ms)
    assert len(spans) <= SPANS_MAX
    assert all(may_be_sent(spans, seq, at_ms, (0,)) for seq, at_ms in sent.items())
    assert not any(may_be_sent(spans, seq, at_ms + numbers * 10_000, (0,)) for seq, at_ms in sent.items())
    assert not any(may_be_sent(spans, seq, at_ms - numbers * 10_000, (0,)) for seq, at_ms in sent.items())
    quarter_ms = (numbers // 4) * 10_000
    if numbers >= 100 and not lost:
        assert not any(may_be_sent(spans, seq, at_ms + quarter_ms, (0,)) for seq, at_ms in sent.items())


def test_the_shift_of_a_clock_and_what_is_about_then_count() -> None:
    spans: list[Span] = []
    for seq in range(5):
        note_sent(spans, seq, 1_000 + seq)
    assert not may_be_sent(spans, 3, 500, (0,))
    assert may_be_sent(spans, 3, 500, (0, 502))
    assert may_be_sent(spans, 3, 500, (0,), slack_ms=500)
    assert may_be_sent(spans, 9, 1, (0,)), "of a number in no span nothing is known"
