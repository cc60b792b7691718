"""A processor slot with a fault: its fold raises, halfway, on beacons that say so: `python -m tests.integration.raising_slot`."""

import sys
from typing import Final

from services.processor.__main__ import main
from services.processor.applications.video_views.app import VideoViews
from services.processor.engine.record import Record

#: A beacon that holds this is folded, and then the fold raises: what it has changed by then must be taken back.
RAISES: Final = b"the fold raises on this"

_fold = VideoViews.fold


def fold(self: VideoViews, record: Record) -> None:
    """What a version with a fault does."""
    _fold(self, record)
    if RAISES in (record.value or b""):
        raise ZeroDivisionError("a fault of the fold")


if __name__ == "__main__":
    VideoViews.fold = fold  # type: ignore[method-assign]
    sys.exit(main())
