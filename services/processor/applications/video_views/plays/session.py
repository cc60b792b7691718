"""The stored row of a session, and what the plays in it need of the stores around."""

from typing import Any, NamedTuple, Protocol

import msgspec

from services.processor.applications.video_views.view.folded_state import StepTaken
from services.processor.applications.video_views.view.order.by_number import Place
from services.processor.applications.video_views.view.order.set_back import SetBack
from services.processor.applications.video_views.view.state import ViewState


class Play(msgspec.Struct, array_like=True, gc=False):
    """One play: where it is stored, and where it begins."""

    ordinal: int
    #: Where its run of the sequence begins, as a `view.Place`; 0, 0, 0 while that is not known.
    run_ms: int
    first_seq: int
    content: str | None = None
    run_seq: int = 0
    run_at_ms: int = 0
    #: Of a closed play: when its last step was sent (client's clock), its last number, and whether it was a view at all.
    ended_ms: int = 0
    last_seq: int = 0
    has_begun: bool = False
    #: Of a closed play: the newest values of the session's counters up to its end, and the usual delay then.
    counters: dict[str, int] = {}
    delay_ms: int | None = None

    @property
    def run(self) -> Place:
        """Where its run begins."""
        return (self.run_ms, self.run_seq, self.run_at_ms)


class Session(msgspec.Struct, array_like=True, gc=False):
    """The stored row of a session: its plays in order, and the revisions of the rows that were made of them."""

    first_append_ms: int
    plays: list[Play] = []
    #: By number of the play; and the numbers whose newest revision says that there is no such view.
    revisions: list[int] = []
    ordinals: int = 0
    #: The first so many plays are closed.
    closed: int = 0
    #: Of the beacons that were late: they are duplicates when they come again.
    late_keys: list[int] = []
    deleted: list[int] = []
    #: Where the client's clock was set back.
    set_back: list[SetBack] = []
    #: Between these lie the delays of its steps that can be moved (`set_back.delay_ms`); None before the first.
    delays_ms: tuple[int, int] | None = None


class Shelf(Protocol):
    """Where the views of a session's plays are kept."""

    def open(self, ordinal: int) -> tuple[ViewState, dict[str, Any]] | None:
        """The view and its dimensions, to be changed; None when it is closed."""
        ...

    def new(self, ordinal: int, first_seq: int) -> tuple[ViewState, dict[str, Any]]:
        """An empty view."""
        ...

    def drop(self, ordinal: int) -> None:
        """Forgets a view whose steps have all turned out to be another's."""
        ...


class Placed(NamedTuple):
    """What became of a step in its session. `taken` is None for one that is late: it is in no play."""

    taken: StepTaken | None
    #: The play that has it, and all whose steps have changed.
    ordinal: int = 0
    changed: frozenset[int] = frozenset()
    #: Whether the session has changed.
    is_rearranged: bool = False
