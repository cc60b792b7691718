"""The fold that all systems do: a few numbers of a view, written once when it ends. An ordinary application of the engine.

A beacon that was seen before (by its sequence number, 0..62) only counts as a duplicate. Any other is counted; the time since the
view's newest beacon so far is playing time if the view was playing; the largest playhead position is kept. `viewend` writes the row
and deletes the state. The peers under `bench/peers` do the same.
"""

from typing import Any, Final

import msgspec

from services.processor.engine.application.application import Application, Context, Processor, StoreSpec
from services.processor.engine.record import Record
from shared import topics
from shared.codec import Undecodable
from shared.topics import Topic

_SEQ_MAX: Final = 62
PLAYING: Final = 2
#: What a view is in after an event; others leave it as it is.
STATES: Final = {
    "viewstart": 1,
    "playing": PLAYING,
    "rebufferend": PLAYING,
    "pause": 3,
    "rebufferstart": 4,
    "viewend": 5,
}


class Beacon(msgspec.Struct, gc=False):
    """What the fold reads of a beacon; the rest is passed over."""

    event: str
    seq: int
    client_time_ms: int
    playhead_ms: int = 0


class State(msgspec.Struct, array_like=True, gc=False):
    """An open view. Bit n of `seen`: sequence number n was seen."""

    seen: int = 0
    count: int = 0
    duplicates: int = 0
    playing_ms: int = 0
    max_playhead_ms: int = 0
    state: int = 0
    at_ms: int = 0


class Row(msgspec.Struct):
    """The row of a view, as JSON under the view's key."""

    count: int
    duplicates: int
    playing_ms: int
    max_playhead_ms: int
    state: int


VIEWS: Final = StoreSpec(
    name="views", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(State).decode
)
_DECODE: Final = msgspec.json.Decoder(Beacon).decode


class ReducedViews:
    """The processor of one partition."""

    def __init__(self, context: Context, rows: Topic) -> None:
        self._context = context
        self._rows = rows
        self._views = context.store(VIEWS)

    def fold(self, record: Record) -> None:
        """Takes one beacon in."""
        key, value = record.key, record.value
        if key is None or value is None:
            raise Undecodable("the record has no key or no value")
        try:
            beacon = _DECODE(value)
        except msgspec.DecodeError as error:
            raise Undecodable(str(error)) from error
        if not 0 <= beacon.seq <= _SEQ_MAX:
            raise Undecodable(f"sequence number {beacon.seq}")
        view = self._views.get(key) or State()
        bit = 1 << beacon.seq
        if view.seen & bit:
            view.duplicates += 1
        else:
            view.seen |= bit
            view.count += 1
            at_ms = beacon.client_time_ms
            if at_ms > view.at_ms:
                if view.state == PLAYING:
                    view.playing_ms += at_ms - view.at_ms
                view.at_ms = at_ms
            if beacon.playhead_ms > view.max_playhead_ms:  # noqa: PLR1730  (a call costs more)
                view.max_playhead_ms = beacon.playhead_ms
            view.state = STATES.get(beacon.event, view.state)
            if beacon.event == "viewend":
                row = Row(view.count, view.duplicates, view.playing_ms, view.max_playhead_ms, view.state)
                self._context.emit(self._rows, key, msgspec.json.encode(row))
                self._views.delete(key)
                return
        self._views.put(key, view)

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        """Rows have no deadlines here."""


def application(name: str) -> Application:
    """The application under a name of its own, and so with topics of its own: `<name>.rows` and `<name>.changelog`."""
    rows = Topic(f"{name}.rows", "<customer>:<view id>", "bench.processor.reduced.Row", "bench", "delete")
    changelog = Topic(f"{name}.changelog", "<store id><row key>, or meta", "engine.rows", "bench", "compact")

    def start(context: Context) -> Processor:
        return ReducedViews(context, rows)

    return Application(
        name=name,
        inputs=(topics.BEACONS,),
        outputs=(rows, topics.REJECTED),
        changelog=changelog,
        stores=(VIEWS,),
        start=start,
    )
