"""A topic that was created again is noticed: by ids that are new, and where records are gone."""

from collections.abc import Mapping

import pytest

from services.processor.runtime.kafka.topic_ids import TopicReplaced
from services.processor.runtime.slot.topic_checks import EXPLAIN_TRIES_MAX, TopicChecks

FORMER, PRESENT = {"beacons": "a"}, {"beacons": "b"}


class Ids:
    """What the broker answers, in order; None: it does not."""

    def __init__(self, *answers: Mapping[str, str] | None) -> None:
        self.newest: Mapping[str, str] | None = None
        self._answers = list(answers)
        self.asked = 0

    def now(self, *, is_fresh: bool) -> Mapping[str, str] | None:
        assert is_fresh
        self.asked += 1
        return self._answers.pop(0) if self._answers else None


class Checked:
    """A partition at work, or the tables: what it was compared with."""

    def __init__(self) -> None:
        self.ids: list[Mapping[str, str]] = []

    def check_topics(self, present: Mapping[str, str]) -> None:
        self.ids.append(present)
        if present != FORMER:
            raise TopicReplaced("beacons")


class Slot:
    def __init__(self, working: Checked) -> None:
        self._working = working

    def working(self) -> dict[int, Checked]:
        return {0: self._working}


def checks(ids: Ids) -> tuple[TopicChecks, Checked, Checked]:
    partition, tables = Checked(), Checked()
    return TopicChecks(ids, tables, Slot(partition)), partition, tables  # type: ignore[arg-type]


def test_new_ids_are_compared_once_with_partitions_and_tables() -> None:
    ids = Ids()
    topics, partition, tables = checks(ids)
    topics.turn()
    assert partition.ids == []
    ids.newest = dict(FORMER)
    topics.turn()
    topics.turn()
    assert partition.ids == tables.ids == [FORMER]
    ids.newest = PRESENT
    with pytest.raises(TopicReplaced):
        topics.turn()


def test_records_that_are_gone_are_explained_by_a_fresh_answer() -> None:
    ids = Ids(None, None, PRESENT)
    topics, _, _ = checks(ids)
    with pytest.raises(TopicReplaced):
        topics.explain_gone_input()
    assert ids.asked == 3


def test_a_broker_that_does_not_answer_is_asked_a_few_times() -> None:
    ids = Ids()
    topics, partition, _ = checks(ids)
    topics.explain_gone_input()
    assert (ids.asked, partition.ids) == (EXPLAIN_TRIES_MAX, [])
