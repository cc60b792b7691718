"""Checkpoint: the result of a core at a cut, and the collection for the next cut."""

from typing import Final

import msgspec

from services.processor.engine.record import Output
from services.processor.engine.state.meta import Meta
from shared.topics import RECORD_BYTES_MAX, REJECTED, Topic

_DETAIL_CHARACTERS_MAX: Final = 1_000


class Checkpoint(msgspec.Struct, frozen=True):
    """All that must become durable together. `changes` maps row keys to rows; None is a tombstone."""

    changes: dict[bytes, bytes | None]
    outputs: list[Output]
    meta: Meta
    #: Records folded into it, and how many records and rows were rejected, by reason.
    records: int
    rejected: dict[str, int]


class Draft:
    """The next checkpoint of an application, without its rows."""

    def __init__(self, application: str) -> None:
        self._application = application
        self.outputs: list[Output] = []
        #: Records folded; records and rows rejected, by reason; timers fired.
        self.records = 0
        self.rejected: dict[str, int] = {}
        self.fired = 0
        #: Of the records folded and of the outputs.
        self.bytes = 0

    def emit(
        self,
        topic: Topic,
        key: bytes,
        value: bytes | None,
        headers: tuple[tuple[str, bytes], ...],
        *,
        by_key: bool,
    ) -> None:
        """Adds an output. Raises ValueError for one that cannot be stored."""
        value_bytes = len(value or b"")
        if value_bytes > RECORD_BYTES_MAX:
            raise ValueError(
                f"an output to {topic.name} has {value_bytes} bytes; at most {RECORD_BYTES_MAX} can be stored"
            )
        self.outputs.append(Output(topic.name, key, value, headers, by_key))
        self.bytes += len(key) + value_bytes

    def mark(self) -> tuple[int, int]:
        """What `undo` needs to drop the outputs that come after."""
        return len(self.outputs), self.bytes

    def undo(self, mark: tuple[int, int]) -> None:
        """Drops the outputs since `mark`."""
        outputs, self.bytes = mark
        del self.outputs[outputs:]

    def reject(self, key: bytes, value: bytes, reason: str, detail: str, origin: str) -> None:
        """Adds a record of topic `rejected`. `origin` says where the bytes were."""
        headers = (
            ("reason", reason.encode()),
            ("detail", detail[:_DETAIL_CHARACTERS_MAX].encode(errors="replace")),
            ("service", self._application.encode()),
            ("origin", origin.encode()),
        )
        self.outputs.append(Output(REJECTED.name, key, value, headers))
        self.bytes += len(key) + len(value)
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
