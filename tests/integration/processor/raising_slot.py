"""A processor slot with faults: its fold does what beacons say: `python -m tests.integration.processor.raising_slot`.

It raises, halfway, or leaves a row too large to be stored, which the real one's limits never do.
"""

import sys
from typing import Final

from services.processor.applications.video_views.app import VideoViews
from services.processor.engine.record import Record
from services.processor.engine.state.store_spec import ROW_BYTES_MAX
from services.processor.program import main

PROGRAM: Final = ("tests.integration.processor.raising_slot",)
#: A beacon that holds this is folded, and then the fold raises: what it has changed by then must be taken back.
RAISES: Final = b"the fold raises on this"
#: A beacon that holds this makes its view's row too large.
TOO_LARGE: Final = b"the row grows too large"

_fold = VideoViews.fold


def fold(self: VideoViews, record: Record) -> None:
    """What a version with faults does."""
    _fold(self, record)
    if RAISES in (record.value or b""):
        raise ZeroDivisionError("a fault of the fold")
    if TOO_LARGE in (record.value or b""):
        key = record.key or b""
        view = self._views.get(key)
        assert view is not None
        view.shown_in = ["x" * ROW_BYTES_MAX]
        self._views.put(key, view, self._views.deadline_ms(key))


if __name__ == "__main__":
    VideoViews.fold = fold  # type: ignore[method-assign]
    sys.exit(main())
