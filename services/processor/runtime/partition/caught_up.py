"""CaughtUp: whether a core has read all input that existed when the partition was taken over or rolled back.

Before that a missing row proves nothing: records that were acknowledged long ago may still wait to be folded.
"""

from collections.abc import Iterable, Mapping

from services.processor.runtime.kafka.end_offsets import End


class CaughtUp:
    """Begins false; true once everything is folded that the inputs' leaders had after the beginning."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = frozenset(topics)
        self.restart(0.0)

    def restart(self, now: float) -> None:
        """The rows were taken or rolled back at `now` (monotonic seconds)."""
        self._since = now
        self._goals: dict[str, int] = {}
        self._is_true = False

    def observe(self, ends: Mapping[str, End], folded: Mapping[str, int], *, read_at: float | None) -> bool:
        """Whether it has caught up: `folded` are the next offsets; at `read_at` everything was folded, where it is known."""
        if self._is_true:
            return True
        for topic, end in ends.items():
            # The first end offset counts. Later ones grow under load, and no owner has answered from records after the first.
            if end.asked_at > self._since:
                self._goals.setdefault(topic, end.offset)
        has_read_all = read_at is not None and read_at > self._since
        knows_goals = self._goals.keys() >= self._topics
        self._is_true = has_read_all or (
            knows_goals and all(folded.get(topic, 0) >= goal for topic, goal in self._goals.items())
        )
        return self._is_true
