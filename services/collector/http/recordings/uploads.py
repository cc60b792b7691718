"""Uploads: streams payloads of session recordings into Kafka in chunks, and never holds one whole.

Bytes in memory are limited for each upload (the chunk that is being filled) and for all together (chunks in flight). While a limit
is reached, nothing more is read, and TCP flow control slows the client.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

import structlog
from aiohttp import StreamReader, web

from services.collector.admission.held import Slots
from services.collector.admission.retry_later import RetryLater
from services.collector.intake.post import InvalidInput
from services.collector.intake.recording import Head
from services.collector.sink.records import Record
from services.collector.sink.sink import Sink, Unstored
from services.rim.telemetry import metrics
from shared.chunks import BETWEEN_CHUNKS_SECONDS_MAX, CHUNK_BYTES_MAX, Chunk, headers_of
from shared.metrics import COLLECTOR_RECORDING_BYTES, COLLECTOR_UNSTORED, COLLECTOR_UPLOADS
from shared.partitioning import partition_of, recording_key
from shared.topics import RECORDINGS, Profile

log = structlog.get_logger(__name__)

#: Chunks of one upload on their way: as many as keep a broker busy while their acknowledgements come back.
WINDOW_CHUNKS: Final = 8
#: Above this size a thread hashes, so that no other request waits for it.
_INLINE_HASH_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class UploadLimits:
    """The limits of one process."""

    payload_bytes_max: int
    #: Uploads at a time; each holds up to one chunk that is being filled.
    uploads_max: int
    #: Chunks of all uploads on their way to Kafka.
    chunks_max: int
    #: From a chunk's first byte to its last.
    chunk_seconds_max: float
    #: Uploads at a time of one customer, and of one address.
    uploads_by_customer_max: int
    uploads_by_address_max: int
    #: How long a client may send nothing: longer than a phone takes to change cells.
    silent_seconds_max: float = 5.0
    #: From the moment at which a chunk is handed over until the next one is stored.
    between_chunks_seconds_max: float = BETWEEN_CHUNKS_SECONDS_MAX
    #: Of a whole upload: well within the time for which Kafka has its first chunk.
    upload_seconds_max: float = 6 * 3_600.0


#: Counts bytes of a payload against its customer's rate as they come. Returns seconds until more may be read; 0: now.
Charge = Callable[[int], float]


@dataclass(frozen=True)
class Uploaded:
    """A payload that is on all in-sync replicas."""

    size_bytes: int
    chunks: int
    sha256: str


class Uploads:
    """Takes payloads in. Make it and use it on the event loop's thread."""

    def __init__(self, sink: Sink, profile: Profile, limits: UploadLimits, *, new_id: Callable[[], str]) -> None:
        self._sink = sink
        self._partitions = RECORDINGS.partitions(profile)
        self._limits = limits
        self._new_id = new_id
        self._room = asyncio.Semaphore(limits.chunks_max)
        self._active = 0
        self._slots = Slots()
        #: The loop itself holds its tasks only weakly.
        self._storing: set[asyncio.Task[None]] = set()
        metrics.gauge(COLLECTOR_UPLOADS).set_function(lambda: self._active)
        self._bytes = metrics.counter(COLLECTOR_RECORDING_BYTES)

    @property
    def bytes_max(self) -> int:
        """Bytes of one payload at the most."""
        return self._limits.payload_bytes_max

    async def receive(self, head: Head, content: StreamReader, address: str, charge: Charge) -> Uploaded:
        """Takes one payload in. `address` is the client's; one address and one customer leave slots for others.

        Returns once every chunk is on all in-sync replicas. Raises `RetryLater`, or `InvalidInput` for an upload that must not be
        repeated.

        After either, chunks of the upload may be stored: they never become a payload, since the last of them is not.
        """
        slots = {
            f"customer {head.customer_id}": self._limits.uploads_by_customer_max,
            f"address {address}": self._limits.uploads_by_address_max,
        }
        if self._active >= self._limits.uploads_max or not self._slots.take_slots(slots):
            raise RetryLater("busy")
        self._active += 1
        try:
            upload = _Upload(head, self._new_id(), self._partitions)
            async for chunk, is_last in self._chunks(content, charge):
                await self._send(upload, await upload.record(chunk, is_last=is_last))
            if not upload.end:
                raise InvalidInput("invalid", "the payload is empty")
            await asyncio.gather(*upload.storing)
            if upload.failure is not None:
                raise upload.failure
        finally:
            self._active -= 1
            self._slots.give_back(slots)
        self._bytes.inc(upload.end)
        return Uploaded(upload.end, upload.index, upload.hash.hexdigest())

    async def _send(self, upload: "_Upload", record: Record) -> None:
        await upload.window.acquire()
        await self._room.acquire()
        since, upload.handed_over = upload.handed_over, asyncio.get_running_loop().time()
        # Chunks are handed over in the order in which their tasks begin, and these begin in the order they are made.
        task = asyncio.create_task(self._store(upload, record, since))
        for tasks in (self._storing, upload.storing):
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if upload.failure is not None:
            raise upload.failure

    async def _store(self, upload: "_Upload", record: Record, since: float | None) -> None:
        """Stores a chunk; `since`: when the one before it was handed over."""
        try:
            # A failed chunk leaves a gap that no later chunk may hide.
            if upload.failure is None:
                await self._sink.store([record])
                now = asyncio.get_running_loop().time()
                if since is not None and now > since + self._limits.between_chunks_seconds_max:
                    # The processor may have forgotten what came before.
                    upload.failure = upload.failure or RetryLater("slow")
        except Unstored as unstored:
            metrics.counter(COLLECTOR_UNSTORED).labels(unstored.reason).inc()
            upload.failure = upload.failure or RetryLater("unstored")
        finally:
            self._room.release()
            upload.window.release()

    async def _chunks(self, content: StreamReader, charge: Charge) -> AsyncIterator[tuple[bytes, bool]]:
        """The body in chunks, and whether each is the last. Raises `RetryLater` or `InvalidInput`."""
        loop = asyncio.get_running_loop()
        held, size_bytes = bytearray(), 0
        deadline = loop.time() + self._limits.chunk_seconds_max
        ends = loop.time() + self._limits.upload_seconds_max
        held_back = 0.0
        while piece := await self._piece(content, min(deadline, ends)):
            size_bytes += len(piece)
            if size_bytes > self._limits.payload_bytes_max:
                raise InvalidInput("too_large", f"more than {self._limits.payload_bytes_max} bytes")
            held += piece
            if wait := charge(len(piece)):
                # TCP holds the client back meanwhile.
                held_back += wait
                if held_back > self._limits.chunk_seconds_max:
                    raise RetryLater("limited", wait)
                await asyncio.sleep(wait)
                deadline += wait
            # What fills a chunk is kept until more comes: the last one must be known as such.
            while len(held) > CHUNK_BYTES_MAX:
                yield bytes(held[:CHUNK_BYTES_MAX]), False
                del held[:CHUNK_BYTES_MAX]
                deadline = loop.time() + self._limits.chunk_seconds_max
        if held:
            yield bytes(held), True

    async def _piece(self, content: StreamReader, deadline: float) -> bytes:
        try:
            silent = asyncio.get_running_loop().time() + self._limits.silent_seconds_max
            async with asyncio.timeout_at(min(deadline, silent)):
                return await content.readany()
        except TimeoutError:
            log.warning("upload_too_slow", chunk_seconds_max=self._limits.chunk_seconds_max)
            raise RetryLater("slow") from None
        except (web.RequestPayloadError, ConnectionError):
            # The client does not read the answer.
            raise RetryLater("gone") from None


class _Upload:
    """One attempt to send a payload."""

    def __init__(self, head: Head, upload_id: str, partitions: int) -> None:
        self._head = head
        self._id = upload_id
        self._key = recording_key(head.customer_id, head.session_id)
        self._partition = partition_of(self._key, partitions)
        self.hash = hashlib.sha256()
        self.index = 0
        self.end = 0
        self.window = asyncio.Semaphore(WINDOW_CHUNKS)
        self.storing: set[asyncio.Task[None]] = set()
        self.failure: RetryLater | None = None
        #: When the newest chunk was handed over, by the loop's clock.
        self.handed_over: float | None = None

    async def record(self, value: bytes, *, is_last: bool) -> Record:
        """The record of the next chunk."""
        if len(value) > _INLINE_HASH_BYTES:
            await asyncio.to_thread(self.hash.update, value)
        else:
            self.hash.update(value)
        self.end += len(value)
        chunk = Chunk(
            session_id=self._head.session_id,
            sequence=self._head.sequence,
            upload=self._id,
            index=self.index,
            count=self.index + 1 if is_last else self._head.chunks,
            end=self.end,
            sha256=self.hash.digest(),
            content_type=self._head.content_type,
            content_encoding=self._head.content_encoding,
        )
        self.index += 1
        return Record(RECORDINGS.name, self._partition, self._key, value, headers_of(chunk))
