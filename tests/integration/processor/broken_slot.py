"""A processor slot of which one thread dies when a file appears.

`python -m tests.integration.processor.broken_slot THREAD FILE`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from services.processor.program import main
from services.processor.runtime.kafka.end_offsets import Ends
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.standby.heartbeats import Heartbeats

#: What each thread does over and over, by its name.
WORK: Final[dict[str, tuple[type, str]]] = {
    "ownership": (Ownership, "_ask"),
    "ends": (Ends, "_ask"),
    "heartbeats: send": (Heartbeats, "_send"),
    "heartbeats: read": (Heartbeats, "_read"),
}


def dies_at(file: Path, work: Callable[[Any], None]) -> Callable[[Any], None]:
    """The same work, until the file is there."""

    def broken(self: Any) -> None:
        if file.exists():
            raise LookupError("broken by a test")
        work(self)

    return broken


if __name__ == "__main__":
    kind, name = WORK[sys.argv[1]]
    setattr(kind, name, dies_at(Path(sys.argv[2]), getattr(kind, name)))
    sys.exit(main())
