"""Requests on disk, first in first out, each durable before `append` returns. Blocking: call it from one thread.

A folder holds segments, files of frames: length, checksum, time, then a request's records as MessagePack. A segment is deleted when
all its requests have been taken out. After a crash, requests that were taken out of an existing segment are taken out again:
duplicates, which the fold recognizes. A segment with bytes that cannot be read is kept as a file `.torn` instead.
"""

import fcntl
import os
import struct
import zlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import structlog

from services.collector.sink.records import Record
from services.rim.telemetry import metrics
from shared.metrics import COLLECTOR_SPOOLED

log = structlog.get_logger(__name__)

SEGMENT_BYTES: Final = 16 * 1024 * 1024
#: Length and checksum of what follows: the time of its arrival (ms since 1970), and the payload.
_HEAD: Final = struct.Struct(">II")
_TIME: Final = struct.Struct(">Q")
FRAME_OVERHEAD_BYTES: Final = _HEAD.size + _TIME.size


class SpoolTaken(OSError):
    """Another process has this folder."""


@dataclass(frozen=True)
class Oldest:
    """The requests that came into a spool first."""

    #: Their records, in order.
    records: list[Record]
    #: How many bytes of the spool they are; 0 when it is empty.
    size_bytes: int
    #: When each request arrived, ms since 1970.
    times_ms: list[int]


@dataclass
class _Segment:
    path: Path
    #: Where its last whole, durable frame ends.
    end: int = 0
    read_at: int = 0
    #: Bytes that cannot be read: those behind `end`, and frames before it that were passed over.
    torn: int = 0


class Spool:
    """The spool in `folder`, with what an earlier process left in it. Raises `OSError`, `SpoolTaken` among them."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise SpoolTaken(f"{folder} is another process's spool") from error
        self._segments: deque[_Segment] = deque()
        self._writing: BinaryIO | None = None
        #: Bytes not yet taken out, and the time of the oldest of them, ms since 1970.
        self.bytes = 0
        self.oldest_ms: int | None = None
        self._number = 0
        self._recover()

    def append(self, requests: Sequence[Sequence[Record]], now_ms: int) -> None:
        """Adds requests in their order and returns when they are on the disk; raises `OSError` when they are not."""
        frames = b"".join(_frame(records, now_ms) for records in requests)
        file = self._writing or self._new_segment()
        segment = self._segments[-1]
        try:
            file.write(frames)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            # It is unknown which part of it was written: the segment ends before it, and the next begins a new file.
            self._end_segment()
            self._cut(segment)
            raise
        segment.end += len(frames)
        self.bytes += len(frames)
        if self.oldest_ms is None:
            self.oldest_ms = now_ms
        if segment.end >= self._segment_bytes:
            self._end_segment()

    def oldest(self, bytes_max: int) -> Oldest:
        """The oldest requests, as many as are in so many bytes; at least one, if there is any."""
        while (segment := self._oldest_segment()) is not None:
            found = _readable(segment, bytes_max)
            if found.size_bytes:
                self.oldest_ms = found.times_ms[0]
                return found
            self._pass_over(segment)
        return Oldest([], 0, [])

    def take_out(self, size_bytes: int) -> None:
        """Forgets the oldest bytes, as `oldest` counted them."""
        segment = self._segments[0]
        segment.read_at += size_bytes
        self.bytes -= size_bytes
        if self._oldest_segment() is None:
            self.oldest_ms = None

    def close(self) -> None:
        """Leaves the folder to the next process."""
        self._end_segment()
        self._lock.close()

    def _oldest_segment(self) -> _Segment | None:
        """The first segment that holds anything; those before it go."""
        while self._segments:
            segment = self._segments[0]
            if segment.read_at < segment.end:
                return segment
            if len(self._segments) == 1:
                self._end_segment()
            if segment.torn:
                # What a crash cut off was never answered with success. What a disk or another version changed was: kept for an
                # operator.
                segment.path.rename(segment.path.with_suffix(".torn"))
            else:
                segment.path.unlink()
            self._segments.popleft()
        return None

    def _pass_over(self, segment: _Segment) -> None:
        """Forgets what cannot be read at the beginning of a segment. The file is kept."""
        size = _unreadable_bytes(_bytes_of(segment))
        segment.torn += size
        metrics.counter(COLLECTOR_SPOOLED).labels("unreadable").inc()
        log.error("spool_unreadable", file=segment.path.name, at=segment.read_at, bytes=size)
        self.take_out(size)

    def _cut(self, segment: _Segment) -> None:
        """Removes what is behind the last durable frame of the newest segment: a disk that refuses would fill up with it."""
        if not segment.end:
            self._segments.remove(segment)
        try:
            if segment.end:
                os.truncate(segment.path, segment.end)
            else:
                segment.path.unlink()
        except OSError as error:
            log.error("spool_segment_not_cut", problem=str(error))

    def _new_segment(self) -> BinaryIO:
        self._number += 1
        path = self._folder / f"{self._number:012}.spool"
        file = path.open("xb")
        try:
            # A file is durable once its folder's entry is.
            descriptor = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            file.close()
            path.unlink(missing_ok=True)
            raise
        self._writing = file
        self._segments.append(_Segment(path))
        return file

    def _end_segment(self) -> None:
        file, self._writing = self._writing, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                log.error("spool_segment_not_closed", problem=str(error))

    def _recover(self) -> None:
        for path in sorted(self._folder.glob("*.spool")):
            self._number = max(self._number, int(path.stem))
            data = path.read_bytes()
            frames, size = _whole_frames(data)
            # Frames behind one that is broken were answered too.
            while (begin := size + _unreadable_bytes(data[size:])) < len(data):
                more, size = _whole_frames(data[begin:])
                frames += more
                size += begin
            segment = _Segment(path, end=size, torn=len(data) - size)
            if segment.torn:
                log.warning("spool_segment_torn", file=str(path), bytes_whole=size, bytes_torn=segment.torn)
            self._segments.append(segment)
            self.bytes += size
            if frames and self.oldest_ms is None:
                self.oldest_ms = frames[0][0]
        if self.bytes:
            log.info("spool_recovered", bytes=self.bytes, oldest_ms=self.oldest_ms)


def size_of(records: Sequence[Record]) -> int:
    """About how many bytes a request takes in the spool."""
    return FRAME_OVERHEAD_BYTES + sum(len(r.value) + len(r.key or b"") + 32 for r in records)


def _readable(segment: _Segment, bytes_max: int) -> Oldest:
    """The oldest requests of a segment up to the first that cannot be read, as `Spool.oldest` gives them."""
    data = _bytes_of(segment, max(bytes_max, _HEAD.size))
    frames, _ = _whole_frames(data)
    if not frames:
        (length, _) = _HEAD.unpack_from(data)
        frames, _ = _whole_frames(_bytes_of(segment, _HEAD.size + length))
    records: list[Record] = []
    size, times_ms = 0, []
    for time_ms, body in frames:
        try:
            records += _records(body)
        except (ValueError, TypeError, msgspec.MsgspecError):
            # Of another version.
            break
        size += FRAME_OVERHEAD_BYTES + len(body)
        times_ms.append(time_ms)
    return Oldest(records, size, times_ms)


def _bytes_of(segment: _Segment, bytes_max: int | None = None) -> bytes:
    """Of a segment, from the first that was not taken out on."""
    left = segment.end - segment.read_at
    with segment.path.open("rb") as file:
        file.seek(segment.read_at)
        return file.read(left if bytes_max is None else min(left, bytes_max))


def _records(data: bytes) -> list[Record]:
    return [
        Record(topic, partition, key, value, [(name, text) for name, text in headers])
        for topic, partition, key, value, headers in msgspec.msgpack.decode(data)
    ]


def _frame(records: Sequence[Record], now_ms: int) -> bytes:
    body = _TIME.pack(now_ms) + msgspec.msgpack.encode(records)
    return _HEAD.pack(len(body), zlib.crc32(body)) + body


def _whole_frames(data: bytes) -> tuple[list[tuple[int, bytes]], int]:
    """The frames at the beginning of `data`, as (time, records), and how many bytes they are."""
    frames = []
    at = 0
    while (body := _body_at(data, at)) is not None:
        frames.append((_TIME.unpack_from(body)[0], body[_TIME.size :]))
        at += _HEAD.size + len(body)
    return frames, at


def _body_at(data: bytes, at: int) -> bytes | None:
    """The body of the frame at a place, if it is whole."""
    if at + FRAME_OVERHEAD_BYTES > len(data):
        return None
    length, checksum = _HEAD.unpack_from(data, at)
    body = data[at + _HEAD.size : at + _HEAD.size + length]
    return body if len(body) == length >= _TIME.size and zlib.crc32(body) == checksum else None


def _unreadable_bytes(data: bytes) -> int:
    """The bytes from the beginning of `data`, where something cannot be read, to the first whole frame that lengths lead to; else
    all."""
    at = 0
    while at + _HEAD.size <= len(data):
        length: int = _HEAD.unpack_from(data, at)[0]
        at += _HEAD.size + length
        if _body_at(data, at) is not None:
            return at
    return len(data)
