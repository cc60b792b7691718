"""Position: the progress of a core, as next offsets, clock and commit number."""

from services.processor.engine.state.meta import Meta


class Position:
    """Durably at `committed`; ahead of it by the checkpoint in flight and what was folded since."""

    def __init__(self, committed: Meta) -> None:
        self.committed = committed
        self.in_flight: Meta | None = None
        self.rewind()

    def rewind(self) -> None:
        """Back to what is committed."""
        committed = self.committed
        self.in_flight = None
        self.next_offsets = dict(committed.next_offsets)
        self.table_offsets = dict(committed.table_offsets)
        #: The target of the clock; ahead of the clock only while more rows are due than one checkpoint may fire.
        self.target_ms = committed.clock_ms
        #: Whether more rows are due than this checkpoint may fire.
        self.is_behind = False
        #: The clock as it was last cut.
        self.cut_clock_ms = committed.clock_ms
        self.commit_number = committed.commit_number

    @property
    def total(self) -> int:
        """The sum of the next offsets: it grows with every record, of any input."""
        return sum(self.next_offsets.values())

    def cut_clock(self, clock_ms: int, next_due_ms: int) -> int:
        """The clock of the checkpoint that is being cut, where the core's own is `clock_ms`."""
        if self.is_behind:
            # Of timers with one deadline, some may have fired and some not: a takeover begins before those that did not.
            # Never before the last cut: a flush that ended late brings back index entries that have fired since.
            clock_ms = max(self.cut_clock_ms, min(clock_ms, next_due_ms - 1))
        self.cut_clock_ms = clock_ms
        return clock_ms

    def begin_commit(self, meta: Meta) -> None:
        """A checkpoint was cut here."""
        self.in_flight, self.commit_number = meta, meta.commit_number

    def commit(self) -> None:
        """The checkpoint in flight is durable. Raises RuntimeError without one."""
        if self.in_flight is None:
            raise RuntimeError("no checkpoint is in flight")
        self.committed, self.in_flight = self.in_flight, None
