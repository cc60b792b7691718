"""Media: executes the media requests of a partition on threads of the slot's pool, and passes the outcomes to the core.

Neither the folding thread nor the group's heartbeat waits for any of it. Unfinished work is dropped when the partition is released.
The new owner finds the requests in the state, and stores the same bytes under the same names.
"""

import threading
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice, zip_longest
from typing import Final, Literal, NamedTuple, get_args

import structlog

from services.processor.engine.application.media_requests import Corrupt, MediaOutcome, MediaRequest, Verifying
from services.processor.engine.core.core import Core
from services.processor.runtime.objects.media_reader import Gone, MediaReader, Stopped, Unread
from services.processor.runtime.objects.object_store import ObjectRefused, ObjectsAway, ObjectStore
from services.rim.process.crash_points import CrashPoints
from services.rim.telemetry.metrics import begin, counter, histogram
from shared.metrics import PROCESSOR_MEDIA, PROCESSOR_MEDIA_BYTES, PROCESSOR_MEDIA_SECONDS
from shared.settings import Settings

log = structlog.get_logger(__name__)

#: Between two tries of one request: doubled each time, up to the maximum.
RETRY_SECONDS_MIN: Final = 0.5
RETRY_SECONDS_MAX: Final = 30.0
_DOUBLINGS_MAX: Final = 10
#: Requests of one partition in the pool at once, for each of its threads.
AT_ONCE_BY_THREAD: Final = 2

#: Of a try that another one follows.
_Again = Literal["failed", "declined"]


class MediaPool:
    """The threads of a slot that execute requests, each with its own reader."""

    def __init__(
        self,
        settings: Settings,
        application: str,
        objects: ObjectStore,
        threads: int,
        crash_points: CrashPoints,
        *,
        refused_seconds: float,
    ) -> None:
        """A request that the object store refuses for `refused_seconds` ends as `refused`."""
        self.threads = threads
        self.refused_seconds = refused_seconds
        self._settings = settings
        self._application = application
        self._objects = objects
        self._crash_points = crash_points
        self._local = threading.local()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="media")
        begin(PROCESSOR_MEDIA, [application], [*get_args(MediaOutcome), *get_args(_Again)])

    def submit(self, partition: int, request: MediaRequest, stopped: threading.Event) -> Future[MediaOutcome]:
        """Works a request: see `work`."""
        return self._pool.submit(self.work, partition, request, stopped)

    def work(self, partition: int, request: MediaRequest, stopped: threading.Event) -> MediaOutcome:
        """Reads, verifies, stores. Raises `Unread`, `ObjectsAway`, `ObjectRefused` (try again), or `Stopped`.

        1. Read the records and store them as they are verified; the object appears only when all of it was right. A crash: no
           object exists, or a part of an upload that no reader can see.
        2. The object is durable. A crash right after: it is stored again, under its name and with its bytes.
        """
        begun = time.monotonic()
        try:
            # Closed at once, with any outcome: the reader is this thread's next request's.
            with closing(self._verified(partition, request, stopped)) as values:
                self._objects.put(request.name, values, request.size_bytes)
        except Gone as error:
            log.error("media_gone", object=request.name, error=str(error))
            return self._counted("gone")
        except Corrupt as error:
            log.error("media_corrupt", object=request.name, error=str(error))
            return self._counted("corrupt")
        self._crash_points.reach("media_stored")
        histogram(PROCESSOR_MEDIA_SECONDS).labels(self._application).observe(time.monotonic() - begun)
        counter(PROCESSOR_MEDIA_BYTES).labels(self._application).inc(request.size_bytes)
        return self._counted("stored")

    def close(self) -> None:
        """Begins no further request."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _verified(
        self, partition: int, request: MediaRequest, stopped: threading.Event
    ) -> Generator[bytes, None, None]:
        verifying, reader = Verifying(request), self._reader()
        with closing(reader.read(request.topic, partition, request.runs, request.size_bytes, stopped)) as values:
            for value in values:
                verifying.add(value)
                yield value
        verifying.end()

    def _reader(self) -> MediaReader:
        reader: MediaReader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = MediaReader(self._settings, self._application)
        return reader

    def _counted(self, outcome: MediaOutcome) -> MediaOutcome:
        counter(PROCESSOR_MEDIA).labels(self._application, outcome).inc()
        return outcome


def retry_seconds(tries: int) -> float:
    """How long a request waits that has failed `tries` times before this one, in seconds."""
    return min(RETRY_SECONDS_MIN * 2.0 ** min(tries, _DOUBLINGS_MAX), RETRY_SECONDS_MAX)


def _by_turns(first: Iterable[bytes], second: Iterable[bytes]) -> Iterator[bytes]:
    """One of each in turn; of one alone where the other has no more."""
    for pair in zip_longest(first, second):
        yield from (key for key in pair if key is not None)


class _UnderWay(NamedTuple):
    request: MediaRequest
    outcome: Future[MediaOutcome]
    tries: int
    refused_since: float | None


class _Waiting(NamedTuple):
    request: MediaRequest
    until: float
    tries: int
    #: Since when every try was refused by the store (monotonic seconds); None: the last one was not.
    refused_since: float | None = None


class Media:
    """The requests of one partition. Used by the slot's folding thread."""

    def __init__(self, application: str, partition: int, pool: MediaPool | None) -> None:
        self._application = application
        self._partition = partition
        self._pool = pool
        self._at_once = 0 if pool is None else pool.threads * AT_ONCE_BY_THREAD
        self._under_way: dict[bytes, _UnderWay] = {}
        self._waiting: dict[bytes, _Waiting] = {}
        self._stopped = threading.Event()

    def is_idle(self, core: Core) -> bool:
        """Whether no request is under way or waits."""
        return not self._under_way and (self._pool is None or not core.media_requests)

    def settle(self, core: Core) -> None:
        """Gives the core the outcomes. Raises what `Core.media_done` raises."""
        for key in [key for key, one in self._under_way.items() if one.outcome.done()]:
            one = self._under_way.pop(key)
            try:
                done = one.outcome.result()
            except (Unread, ObjectsAway) as error:
                self._wait(key, one, error, None)
            except ObjectRefused as error:
                self._refused(core, key, one, error)
            except Stopped:
                continue
            else:
                core.media_done(key, one.request, done)

    def _wait(self, key: bytes, one: _UnderWay, error: Exception, refused_since: float | None) -> None:
        """The request is tried again later."""
        seconds = retry_seconds(one.tries)
        self._waiting[key] = _Waiting(one.request, time.monotonic() + seconds, one.tries + 1, refused_since)
        outcome: _Again = "failed" if refused_since is None else "declined"
        counter(PROCESSOR_MEDIA).labels(self._application, outcome).inc()
        log.warning("media_failed", object=one.request.name, error=str(error), again_in_seconds=seconds)

    def _refused(self, core: Core, key: bytes, one: _UnderWay, error: ObjectRefused) -> None:
        """The store does not take the object: it is tried again for a time, because rights and buckets may be mended."""
        assert self._pool is not None
        now = time.monotonic()
        since = now if one.refused_since is None else one.refused_since
        if now - since < self._pool.refused_seconds:
            self._wait(key, one, error, since)
            return
        counter(PROCESSOR_MEDIA).labels(self._application, "refused").inc()
        log.error("media_refused", object=one.request.name, error=str(error), tries=one.tries + 1)
        core.media_done(key, one.request, "refused")

    def begin(self, core: Core) -> None:
        """Begins pending requests while there is room: alternately one that was never tried and one whose retry is due.

        A request that waits holds no place, so requests that fail for good delay the others by their turns alone.
        """
        room = self._at_once - len(self._under_way)
        if self._pool is None or room <= 0 or not core.media_requests:
            return
        for key in islice(_by_turns(self._untried(core), self._due(core)), room):
            waited = self._waiting.pop(key, None)
            request = core.media_requests[key]
            working = self._pool.submit(self._partition, request, self._stopped)
            tries, refused_since = (0, None) if waited is None else (waited.tries, waited.refused_since)
            self._under_way[key] = _UnderWay(request, working, tries, refused_since)

    def _untried(self, core: Core) -> list[bytes]:
        pending = (key for key in core.media_requests if key not in self._under_way and key not in self._waiting)
        return list(islice(pending, self._at_once))

    def _due(self, core: Core) -> list[bytes]:
        now = time.monotonic()
        for key in [key for key, one in self._waiting.items() if core.media_requests.get(key) != one.request]:
            del self._waiting[key]
        return sorted(
            (key for key, one in self._waiting.items() if one.until <= now and key not in self._under_way),
            key=lambda key: self._waiting[key].until,
        )

    def forget(self) -> None:
        """The partition is released, or taken over again: all unfinished requests are dropped."""
        self._stopped.set()
        for one in self._under_way.values():
            one.outcome.cancel()
        self._under_way, self._waiting, self._stopped = {}, {}, threading.Event()
