"""Acts on the whole state of an application: export, import, reset, and other offsets to continue from."""

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec
from confluent_kafka import TopicPartition

from services.processor.engine.application.application import Application
from services.processor.engine.state.meta import Meta
from services.processor.engine.state.rows import ROW_FORMAT
from services.processor.runtime.kafka.clients import changelog_consumer
from services.processor.runtime.kafka.reading import QUERY_SECONDS_MAX, ReadingFailed, ends
from services.processor.runtime.kafka.topic_ids import TopicIds
from services.processor.runtime.operations.state import savepoint
from services.processor.runtime.operations.state.changing import Change, Unsafe, refuse_while_slots_work
from services.processor.runtime.operations.state.copies import copied
from services.processor.runtime.operations.state.savepoint import SavedPartition, Savepoint, SavepointWrong
from services.rim.process.crash_points import CrashPoints
from shared.settings import Settings

#: Where an application continues to read its inputs: where it was, at the first record that there is, at the end as it is now.
Inputs = Literal["keep", "beginning", "end"]
_WORK: Final = ".work"


class Done(msgspec.Struct, frozen=True):
    """What an act did to a partition, or with `--dry-run` would do."""

    partition: int
    #: Rows that were written or deleted.
    rows: int
    #: From where its inputs are read next; an input that is not named is read from its beginning.
    next_offsets: dict[str, int]


class Moved(msgspec.Struct, frozen=True):
    """Another offset from which an input is read next. `records`: offsets passed over; less than 0: so many are folded again."""

    partition: int
    before: int
    after: int
    records: int


def export(
    settings: Settings, application: Application, folder: Path, *, is_dry: bool, points: CrashPoints
) -> list[Done]:
    """Writes a savepoint of each partition's last commit to `folder`. Slots may be at work.

    Raises `SavepointWrong` where the folder has a savepoint or other files; `ReadingFailed`, `KafkaException`, `NewerFormat`.
    After a crash, run it again: it begins again.
    """
    numbers = range(application.partitions(settings.profile))
    if folder.exists():
        strange = [
            one.name for one in folder.iterdir() if one.suffix not in {".rows", ".partial"} and one.name != _WORK
        ]
        if strange:
            raise SavepointWrong(f"{folder} is not empty: it has {strange[0]}. Name a new folder")
    work = Path(tempfile.mkdtemp()) if is_dry else folder / _WORK
    shutil.rmtree(work, ignore_errors=True)
    if not is_dry:
        folder.mkdir(parents=True, exist_ok=True)
    saved: list[SavedPartition] = []
    try:
        for number in numbers:
            with copied(settings, application, number, work / str(number)) as copy:
                if is_dry:
                    saved.append(SavedPartition(number, "", sum(1 for _ in copy.rows()), "", copy.meta))
                else:
                    saved.append(savepoint.write_rows(folder, number, copy.rows(), copy.meta))
            shutil.rmtree(work / str(number), ignore_errors=True)
            points.reach("rows_written")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if not is_dry:
        stores = {spec.id: spec.name for spec in application.stores}
        savepoint.write(folder, Savepoint(savepoint.FORMAT, application.name, ROW_FORMAT, stores, saved))
    return [Done(one.partition, one.rows, one.meta.next_offsets if one.meta else {}) for one in saved]


def import_(
    settings: Settings, application: Application, folder: Path, inputs: Inputs, *, is_dry: bool, points: CrashPoints
) -> list[Done]:
    """Makes a savepoint the state of an application that has none: all partitions in one transaction.

    Raises `SavepointWrong`, `NewerFormat` for savepoints that this version cannot read. Raises `Unsafe` while slots work, if the
    application has state, or if the number of partitions differs. With `keep` it raises `Unsafe` also if the inputs differ or no
    longer have these offsets.
    """
    saved = savepoint.read(folder)
    numbers = list(range(application.partitions(settings.profile)))
    refuse_what_does_not_fit(saved, application, numbers)
    for one in saved.partitions:
        savepoint.verify(folder, one)
    begins = _Begins(settings, application, inputs)
    metas = {one.partition: begins.of(one.partition, one.meta or _first(len(numbers))) for one in saved.partitions}
    refuse_while_slots_work(settings, application)
    change = None if is_dry else Change(settings, application, points)
    commits = _refuse_state(settings, application, numbers)
    done = []
    for one in saved.partitions:
        meta = metas[one.partition]
        done.append(Done(one.partition, one.rows, meta.next_offsets))
        if change is not None and (one.meta is not None or meta.next_offsets):
            change.rows(one.partition, savepoint.rows_of(folder, one))
            number = max(meta.commit_number, commits[one.partition]) + 1
            change.meta(one.partition, msgspec.structs.replace(meta, commit_number=number))
    if change is not None:
        change.commit()
    return done


def refuse_what_does_not_fit(saved: Savepoint, application: Application, numbers: list[int]) -> None:
    """Raises `Unsafe` or `NewerFormat` where the application cannot have the savepoint's state."""
    if saved.application != application.name:
        raise Unsafe(f"the savepoint is of {saved.application}, not of {application.name}")
    if sorted(one.partition for one in saved.partitions) != numbers:
        raise Unsafe(
            f"the savepoint has {len(saved.partitions)} partitions, {application.name} has {len(numbers)}:"
            " keys would lie in others"
        )
    for one in saved.partitions:
        if one.meta is not None:
            application.row_formats(one.meta)


def _refuse_state(settings: Settings, application: Application, numbers: Iterable[int]) -> dict[int, int]:
    """Raises `Unsafe` where a partition has rows or a position; returns the numbers of their last commits."""
    commits = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            with copied(settings, application, number, Path(folder) / str(number)) as copy:
                if copy.has_rows or (copy.meta is not None and copy.meta.next_offsets):
                    raise Unsafe(
                        f"{application.id} has state already, in partition {number}: it was imported, or slots made it."
                        " `state reset` deletes it"
                    )
                commits[number] = copy.meta.commit_number if copy.meta is not None else 0
            shutil.rmtree(Path(folder) / str(number), ignore_errors=True)
    return commits


def reset(
    settings: Settings, application: Application, inputs: Inputs, *, is_dry: bool, points: CrashPoints
) -> list[Done]:
    """Deletes every row, in one transaction; the application continues as a new one. Raises `Unsafe`, and as `export` does."""
    begins = _Begins(settings, application, inputs)
    refuse_while_slots_work(settings, application)
    change = None if is_dry else Change(settings, application, points)
    done = []
    with tempfile.TemporaryDirectory() as folder:
        numbers = range(application.partitions(settings.profile))
        for number in numbers:
            with copied(settings, application, number, Path(folder) / str(number)) as copy:
                if copy.meta is None and inputs != "end":
                    # It begins as a new one anyhow.
                    continue
                former = copy.meta or _first(len(numbers))
                empty = msgspec.structs.replace(
                    former,
                    clock_ms=former.clock_ms if inputs == "keep" else 0,
                    commit_number=former.commit_number + 1,
                    store_formats={},
                    failing={},
                    rows={},
                    tallies={},
                    version_at=None,
                )
                meta = begins.of(number, empty)
                deleted = ((key, None) for key, _ in copy.rows())
                rows = sum(1 for _ in deleted) if change is None else change.rows(number, deleted)
                if change is not None:
                    change.meta(number, meta)
                done.append(Done(number, rows, meta.next_offsets))
            shutil.rmtree(Path(folder) / str(number), ignore_errors=True)
    if change is not None:
        change.commit()
    return done


def move(
    settings: Settings,
    application: Application,
    topic: str,
    partitions: Iterable[int] | None,
    offset_of: Callable[[int, int, int], int],
    *,
    is_forward: bool,
    is_dry: bool,
    points: CrashPoints,
) -> list[Moved]:
    """Reads an input from other offsets next: `offset_of(partition, low, end)`. Rows stay as they are.

    Partitions that are there already, or beyond it in the direction, are left alone.

    Raises `Unsafe` while slots work and for an offset that the input does not have; as `export` does.
    """
    numbers = range(application.partitions(settings.profile))
    wanted = list(numbers) if partitions is None else sorted(set(partitions))
    if topic not in {one.name for one in application.inputs} or any(number not in numbers for number in wanted):
        raise Unsafe(f"{application.name} has no such input or partition: {topic} {wanted}")
    refuse_while_slots_work(settings, application)
    change = None if is_dry else Change(settings, application, points)
    moved = []
    with tempfile.TemporaryDirectory() as folder:
        for number in wanted:
            low, end = _ends(settings, application, topic, number)
            after = offset_of(number, low, end)
            if not low <= after <= end:
                raise Unsafe(f"{topic}/{number} has offsets {low} to {end}, not {after}")
            with copied(settings, application, number, Path(folder) / str(number)) as copy:
                meta = copy.meta or _first(len(numbers))
            shutil.rmtree(Path(folder) / str(number), ignore_errors=True)
            before = meta.next_offsets.get(topic, low)
            if after == before or (after > before) != is_forward:
                continue
            moved.append(Moved(number, before, after, after - before))
            if change is not None:
                change.meta(number, read_from(meta, {topic: after}))
    if change is not None:
        change.commit()
    return moved


def _first(partitions: int) -> Meta:
    """The position of a partition that has never committed."""
    return Meta({}, 0, 0, partitions=partitions)


def read_from(meta: Meta, offsets: dict[str, int]) -> Meta:
    """`meta` after a commit that has moved the next offsets of these inputs."""
    return msgspec.structs.replace(
        meta,
        next_offsets=meta.next_offsets | offsets,
        commit_number=meta.commit_number + 1,
        # Those of records before the former offsets.
        leader_epochs={name: epoch for name, epoch in meta.leader_epochs.items() if name not in offsets},
        # Places of failures are sums of offsets, which begin again.
        failing={},
        version_at=None,
    )


class _Begins:
    """From where the inputs are read next, as the operator has chosen."""

    def __init__(self, settings: Settings, application: Application, inputs: Inputs) -> None:
        """Raises `ReadingFailed` when no broker gives the ids of the topics."""
        self._settings = settings
        self._application = application
        self._inputs = inputs
        present = TopicIds(settings, application).now()
        if present is None:
            raise ReadingFailed("no broker gives the ids of the topics")
        self._present = present

    def of(self, number: int, meta: Meta) -> Meta:
        """`meta` with these offsets and the ids of the present topics. Raises `Unsafe` with `keep` where they do not fit."""
        names = [topic.name for topic in self._application.inputs]
        offsets: dict[str, int] = {}
        epochs: dict[str, int] = {}
        if self._inputs == "end":
            offsets = {name: _ends(self._settings, self._application, name, number)[1] for name in names}
        if self._inputs == "keep":
            offsets, epochs = meta.next_offsets, meta.leader_epochs
            for name, offset in offsets.items():
                self._refuse(number, name, offset, meta.topic_ids.get(name))
        return msgspec.structs.replace(
            meta,
            next_offsets=offsets,
            leader_epochs=epochs,
            topic_ids=self._present,
            failing=meta.failing if self._inputs == "keep" else {},
            # Of the topics of this cluster.
            table_offsets=meta.table_offsets if self._inputs == "keep" else {},
            version_at=meta.version_at if self._inputs == "keep" else None,
        )

    def _refuse(self, number: int, name: str, offset: int, topic_id: str | None) -> None:
        if topic_id is not None and topic_id != self._present.get(name):
            raise Unsafe(
                f"{name} is another topic than that of the savepoint: its offsets mean nothing here."
                " Choose --inputs beginning or end"
            )
        low, end = _ends(self._settings, self._application, name, number)
        if not low <= offset <= end:
            raise Unsafe(f"{name}/{number} has offsets {low} to {end}, not {offset}: choose --inputs beginning or end")


def offset_at(settings: Settings, application: Application, at: TopicPartition) -> int | None:
    """The first offset whose record is not before `at.offset` (ms since 1970); None where there is none."""
    consumer = changelog_consumer(settings, application, at.partition, "read_committed")
    try:
        (found,) = consumer.offsets_for_times([at], timeout=QUERY_SECONDS_MAX)
        return None if found.offset < 0 else int(found.offset)
    finally:
        consumer.close()


def _ends(settings: Settings, application: Application, topic: str, number: int) -> tuple[int, int]:
    consumer = changelog_consumer(settings, application, number, "read_committed")
    try:
        return ends(consumer, TopicPartition(topic, number))
    finally:
        consumer.close()
