"""Quarantine: what of a partition is rejected because the application raises on it, so that the rest goes on."""

from collections.abc import Iterable

from services.processor.engine.application.failures import (
    FAILED_MAX,
    FAILED_WINDOW_RECORDS,
    ApplicationFailed,
    FireFailed,
    FoldFailed,
    RowRefused,
    TooManyFailed,
)


class Quarantine:
    """On what of a partition the application failed; it is rejected when its turn comes again."""

    def __init__(self, application: str, partition: int) -> None:
        self._of = f"{application} failed", f"partition {partition}"
        #: Records by topic and offset, rows by key and deadline; of these, those that the application could not release.
        self.records: set[tuple[str, int]] = set()
        self.rows: set[tuple[bytes, int]] = set()
        self.stuck_rows: set[tuple[bytes, int]] = set()
        #: Rows that could not be stored: whatever changes one is looked at.
        self.suspects: set[bytes] = set()
        #: Where of late it was rejected (see `Meta.failed_at`).
        self.failed_at: list[int] = []

    def add(self, failure: ApplicationFailed) -> None:
        """From now on, this is rejected."""
        if isinstance(failure, FoldFailed):
            self.records.add((failure.record.topic, failure.record.offset))
        elif isinstance(failure, FireFailed):
            row = failure.row_key, failure.deadline_ms
            (self.stuck_rows if row in self.rows else self.rows).add(row)
        elif isinstance(failure, RowRefused):
            # Which record made it so is found out when they are given again.
            self.suspects.add(failure.row_key)

    def begin(self, failed_at: Iterable[int]) -> None:
        """The core stands where so much had failed."""
        self.failed_at = list(failed_at)

    def note(self, at: int) -> None:
        """Something was rejected where the next offsets add up to `at`. Raises `TooManyFailed`."""
        self.failed_at = [earlier for earlier in self.failed_at if earlier > at - FAILED_WINDOW_RECORDS] + [at]
        if len(self.failed_at) > FAILED_MAX:
            failed, partition = self._of
            raise TooManyFailed(
                f"{failed} on {len(self.failed_at)} of the last {FAILED_WINDOW_RECORDS} records of {partition};"
                f" more than {FAILED_MAX} are not rejected: mend it or roll it back"
            )
