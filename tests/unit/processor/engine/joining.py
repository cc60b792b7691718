"""A small application for tests of the engine: joins what two topics say of a key within a session, by event time."""

from typing import Any

import msgspec

from services.processor.engine.application.application import Application, Context, EventTime, StoreSpec
from services.processor.engine.record import Record
from services.processor.engine.windows import Sessions, Window
from shared import topics
from shared.codec import Undecodable
from shared.topics import Topic

LEFT = Topic(name="left", key="k", schema="<event ms> <text>", owner="test", cleanup="delete")
RIGHT = Topic(name="right", key="k", schema="<event ms> <text>", owner="test", cleanup="delete")
JOINED = Topic(name="joined", key="k", schema="<first>-<last>: <left>|<right>", owner="test", cleanup="delete")
CHANGELOG = Topic(name="joining.changelog", key="k", schema="rows", owner="test", cleanup="compact")


class Session(msgspec.Struct, array_like=True):
    first_ms: int
    last_ms: int
    left: list[str]
    right: list[str]

    @property
    def window(self) -> Window:
        return Window(self.first_ms, self.last_ms)


OPEN = StoreSpec(name="open", id=1, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(list[Session]).decode)


def event_ms(record: Record) -> int:
    head = (record.value or b"").partition(b" ")[0]
    if head == b"poison":
        raise ZeroDivisionError("a bug in the application")
    if not head.isdigit():
        raise Undecodable("no time")
    return int(head)


class Joining:
    def __init__(self, context: Context, sessions: Sessions, spec: StoreSpec[list[Session]]) -> None:
        self._context = context
        self._sessions = sessions
        self._open = context.store(spec)

    def fold(self, record: Record) -> None:
        assert record.key is not None
        assert record.value is not None
        if self._context.is_late:
            self._context.emit(topics.LATE, record.key, record.value)
            return
        text = record.value.partition(b" ")[2].decode()
        window = self._sessions.window_of(event_ms(record))
        session = Session(
            *window, [text] if record.topic == LEFT.name else [], [text] if record.topic == RIGHT.name else []
        )
        sessions = self._open.get(record.key) or []
        grown, touched = self._sessions.merge(window, [other.window for other in sessions])
        for other in sessions:
            if other.window in touched:
                session.left += other.left
                session.right += other.right
        session.first_ms, session.last_ms = grown
        self._put(record.key, [*(other for other in sessions if other.window not in touched), session])

    def fire(self, spec: StoreSpec[Any], key: bytes) -> None:
        sessions = self._open.get(key) or []
        closed = [each for each in sessions if self._sessions.is_closed(each.window, self._context.clock_ms)]
        for each in sorted(closed, key=lambda session: session.window):
            summary = f"{each.first_ms}-{each.last_ms}: {','.join(sorted(each.left))}|{','.join(sorted(each.right))}"
            self._context.emit(JOINED, key, summary.encode())
        self._put(key, [each for each in sessions if each not in closed])

    def _put(self, key: bytes, sessions: list[Session]) -> None:
        if sessions:
            self._open.put(key, sessions, min(self._sessions.closes_ms(each.window) for each in sessions))
        else:
            self._open.delete(key)


def application(sessions: Sessions, spec: StoreSpec[list[Session]] = OPEN) -> Application:
    """The join with these windows, its open sessions kept in this store."""
    return Application(
        name="joining",
        inputs=(LEFT, RIGHT),
        outputs=(JOINED, topics.LATE, topics.REJECTED),
        changelog=CHANGELOG,
        stores=(spec,),
        start=lambda context: Joining(context, sessions, spec),
        event_time=EventTime(event_ms, grace_ms=sessions.grace_ms, ahead_ms_max=1_000),
    )


APPLICATION = application(Sessions(gap_ms=100, grace_ms=50))
