"""The stored state of the folded steps of a view, and the outcome of a step."""

from typing import Any, Final, NamedTuple

import msgspec

from services.processor.applications.video_views.view.progress.progress import Progress


class Folded(msgspec.Struct, array_like=True, gc=False):
    """What the folded steps amount to. Where the newest are kept, `progress` is `settled` and then `recent`."""

    progress: Progress = msgspec.field(default_factory=Progress)
    #: Whether the newest steps are kept: always, if the client's steps can move; else from the first clock step on.
    keeps: bool = False
    #: Packed, as the row stores them: they are written with every change of the view, and read only where the order changes.
    recent: list[msgspec.Raw] = []
    settled: Progress | None = None
    settled_dimensions: dict[str, Any] = {}
    #: The smallest clock offset of the steps that are not in `recent`, and of the copies of any.
    settled_offset_ms: int | None = None
    #: It grew too large: its dimensions stay as they are, and `settled_dimensions` is empty.
    is_full: bool = False
    #: The delay of the first timed step is the usual one, as the plays before it show.
    is_usual_at_first: bool = False


class StepTaken(NamedTuple):
    """What became of a step."""

    is_new: bool
    #: Whether the dimensions of the view changed.
    dimensions_changed: bool
    #: It is a duplicate that counts instead of the step that came before: the row changes.
    is_nearer: bool = False
    #: It came too late to be put in its place.
    is_late: bool = False


#: A step that came before and changes nothing.
DUPLICATE: Final = StepTaken(is_new=False, dimensions_changed=False)
#: A step that came for the first time; one with which the dimensions changed.
NEW: Final = StepTaken(is_new=True, dimensions_changed=False)
NEW_WITH_DIMENSIONS: Final = StepTaken(is_new=True, dimensions_changed=True)
