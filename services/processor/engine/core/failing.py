"""Failing: how often the application failed recently, by key. Bounded: a client that invents keys only displaces other keys."""

from collections.abc import Mapping

from services.processor.engine.application.failure_rules import FAILING_KEYS_MAX, FailureRules


class Failing:
    """Recent failures of one partition, by the digest of the key: how many, and where the last one was."""

    def __init__(self, rules: FailureRules) -> None:
        self._rules = rules
        #: In the order of the last failure.
        self.keys: dict[bytes, tuple[int, int]] = {}

    def begin(self, keys: Mapping[bytes, tuple[int, int]]) -> None:
        """These were the recent failures."""
        self.keys = dict(keys)

    def note(self, digest: bytes, at: int) -> int:
        """Counts a failure; returns the key's number of failures with at most the window between each two."""
        # A new dict: the former one may be part of a checkpoint.
        keys = dict(self.keys)
        before, last_at = keys.pop(digest, (0, at))
        number = before + 1 if at - last_at <= self._rules.quarantine_window_records else 1
        if len(keys) >= FAILING_KEYS_MAX:
            del keys[next(iter(keys))]
        keys[digest] = (number, at)
        self.keys = keys
        return number

    def forget(self, digest: bytes) -> None:
        """The key is quarantined."""
        self.keys = {other: failures for other, failures in self.keys.items() if other != digest}

    def distinct_since(self, at: int) -> int:
        """How many keys have failed since the next offsets added up to `at`."""
        return sum(last_at >= at for _, last_at in self.keys.values())
