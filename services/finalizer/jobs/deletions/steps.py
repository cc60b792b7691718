"""Carries out requests that data be deleted, step by step (`accounts.core.deletions`). A step that was cut off is done again."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import psycopg
import structlog
from confluent_kafka import KafkaException
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from services.accounts.core.deletions import STEPS, Step
from services.finalizer import progress
from services.finalizer.driver import Driver, clock_ms
from services.finalizer.jobs.deletions.finding import (
    Found,
    Subject,
    TooManyViews,
    apis_of,
    find,
    keys_of,
    sessions_of,
)
from services.finalizer.jobs.deletions.learned import Learned
from services.finalizer.jobs.deletions.open_state import OpenState
from services.finalizer.jobs.deletions.tables import forget
from services.finalizer.serving import reprocess_lock
from services.finalizer.serving.deletion_requests import DeletionRequests, Work
from services.finalizer.streaming.stream import checkpoint
from services.finalizer.warehouse import landed, tables
from services.finalizer.warehouse.landed import Ends
from services.finalizer.warehouse.recorded_objects import ObjectsFailed, delete_objects
from shared import topics
from shared.schemas.live import BUCKET_MS
from shared.topics import BEACONS, VIEWS, Topic

log = structlog.get_logger(__name__)

#: Which topics may have a viewer's data, whether or not the finalizer lands them.
_HOLDING: Final[Sequence[Topic]] = (
    *(topics.BEACONS, topics.VIEWS, topics.VIEWS_PROTOBUF, topics.LATE, topics.REJECTED, topics.VIDEO_VIEWS_CHANGELOG),
    *(topics.SPANS, topics.TRACES, topics.LATE_SPANS, topics.TRACES_CHANGELOG, topics.API_CALLS),
    *(topics.RECORDINGS, topics.RECORDING_INDEX, topics.RECORDINGS_CHANGELOG),
    # Names of rules are texts of people.
    *(topics.ALERT_RULES, topics.ALERT_EVENTS, topics.ALERTS_CHANGELOG),
)
#: Those that have more of a customer.
_HOLDING_CUSTOMERS: Final[Sequence[Topic]] = (
    *(
        *_HOLDING,
        topics.LIVE,
        topics.RECEIVED,
        topics.API_CHANGES,
        topics.API_WINDOWS,
        topics.API_ANOMALIES,
        topics.WEBHOOKS_FAILED,
    ),
    *(topics.API_SCHEMAS_CHANGELOG, topics.API_BASELINES_CHANGELOG),
)
#: After a customer's views were deleted, partitions say how many that makes within this time; then that there is nothing.
_LIVE_MS: Final = 2 * BUCKET_MS
#: What passes by itself: the request waits, and is looked at again.
_PASSING: Final = (psycopg.Error, KafkaException, ObjectsFailed, reprocess_lock.ReprocessLocked)
#: What Spark fails with. It may pass, as a full disk does, or be met at each try, as a lost file is.
_OF_SPARK: Final = (PySparkException, Py4JJavaError)
#: A try may read whole tables: how long the first wait after Spark has failed is, and the longest; each is twice the one before.
_AGAIN_MS: Final = 10_000
_AGAIN_MS_MAX: Final = 3_600_000


class NoObjects(RuntimeError):
    """Recordings are to be deleted, but no setting says where they are."""


#: None: it waits.
Outcome = Mapping[str, int] | None


class Deletions:
    """Belongs to one thread. `turns` are what batches hold while they write."""

    def __init__(
        self,
        driver: Driver,
        requests: DeletionRequests,
        state: OpenState,
        learned: Learned,
        *,
        turns: Sequence[AbstractContextManager[Any]] = (),
        clock_ms: Callable[[], int] = clock_ms,
    ) -> None:
        self._driver = driver
        self._requests = requests
        self._state = state
        self._learned = learned
        self._turns = turns
        self._clock_ms = clock_ms
        #: By request and step, the ends that were seen when it began to wait for them.
        self._awaited: dict[tuple[str, Step], Ends] = {}
        #: By viewer's request, what the first step has found, for the second.
        self._found: dict[str, Found] = {}
        #: By request that Spark failed for: the wait before the next try, and when that is, ms.
        self._failed: dict[str, tuple[int, int]] = {}
        self._steps: Final[Mapping[Step, Callable[[Work], Outcome]]] = {
            Step.RULES: learned.withdraw_rules,
            Step.FOUND: self._find,
            Step.STATE: self._delete_state,
            Step.LEARNED: self._delete_learned,
            Step.LANDED: self._land,
            Step.RECORDINGS: self._delete_recordings,
            Step.WAREHOUSE: self._delete_rows,
            Step.TOPICS: self._look_at_topics,
        }

    def advance(self, *, although_stopping: bool = False) -> int:
        """Does of each open request what can be done now; returns how many of them wait for more that is to be done here."""
        try:
            works = self._requests.open()
        except psycopg.Error as error:
            log.warning("deletions_away", kind=type(error).__name__)
            return 0
        left = 0
        for work in works:
            if self._driver.stop.is_set() and not although_stopping:
                return left
            if not although_stopping and self._clock_ms() < self._failed.get(work.id, (0, 0))[1]:
                left += 1
                continue
            try:
                left += not self._advance(work)
            except TooManyViews as error:
                self._requests.fail(work, str(error))
                log.error("deletion_failed", deletion=work.id, problem=str(error))
            except (NoObjects, *_PASSING) as error:
                left += 1
                log.warning("deletion_waits", deletion=work.id, kind=type(error).__name__)
                self._note(work, _problem_of(error))
            except _OF_SPARK as error:
                left += 1
                wait_ms = min(2 * self._failed.get(work.id, (_AGAIN_MS // 2, 0))[0], _AGAIN_MS_MAX)
                self._failed[work.id] = wait_ms, self._clock_ms() + wait_ms
                # Its text may have what was searched for.
                log.error("deletion_failed_for_now", deletion=work.id, kind=type(error).__name__, again_in_ms=wait_ms)
                self._note(work, type(error).__name__)
        return left

    def _advance(self, work: Work) -> bool:
        """Whether all is done that is done here: the last step is the service query's, which ends the request."""
        for step in STEPS:
            if step in work.done or step not in self._steps:
                continue
            progress.step()
            self._requests.begin(work, step)
            found = self._steps[step](work)
            if found is None:
                return False
            self._driver.crash_points.reach("deletion_step")
            self._requests.end_step(work, step, found)
            self._requests.waits(work, "")
            self._awaited.pop((work.id, step), None)
            self._failed.pop(work.id, None)
            log.info("deletion_step", deletion=work.id, step=step, found=dict(found))
        return True

    def _note(self, work: Work, problem: str) -> None:
        try:
            self._requests.waits(work, problem)
        except psycopg.Error as error:
            log.warning("deletions_away", kind=type(error).__name__)

    # Steps.

    def _find(self, work: Work) -> Outcome:
        if not self._has_landed(work, Step.FOUND, [BEACONS.name]):
            return None
        subject = _subject(work)
        found = None if subject.viewer is None else find(self._driver, subject)
        sessions = sessions_of(self._driver, subject, found)
        self._requests.keep_sessions(work, sessions)
        work.sessions[:] = sessions
        if found is not None:
            self._found[work.id] = found
        return {"sessions": len(sessions)}

    def _delete_state(self, work: Work) -> Outcome:
        # Once, at once: a later try searches what has come by then, too.
        found = self._found.pop(work.id, None)
        keys = keys_of(self._driver, _subject(work), found, now_ms=self._clock_ms())
        return self._state.delete(work.id, work.customer_id, keys, work.sessions)

    def _delete_learned(self, work: Work) -> Outcome:
        if work.viewer is None:
            # Gauges of its views come until then, of which alerts would learn again.
            settle_ms = self._driver.settings.deletion_settle_seconds * 1_000 + _LIVE_MS
            if work.state_deleted_ms is None or self._clock_ms() < work.state_deleted_ms + settle_ms:
                return None
        return self._learned.delete(work, lambda: apis_of(self._driver, _subject(work)))

    def _land(self, work: Work) -> Outcome:
        settings = self._driver.settings
        if self._clock_ms() < work.asked_ms + settings.deletion_settle_seconds * 1_000:
            return None
        return {} if self._has_landed(work, Step.LANDED, self._streams()) else None

    def _delete_recordings(self, work: Work) -> Outcome:
        where = self._driver.settings.objects
        if not where:
            if work.sessions and any(topic.application == "recordings" for topic in self._driver.settings.row_topics):
                raise NoObjects("FINALIZER_OBJECTS does not say where recordings are")
            return {}
        if work.viewer is None:
            return {"objects": delete_objects(where, work.customer_id)}
        return {"objects": sum(delete_objects(where, f"{work.customer_id}/{one}") for one in work.sessions)}

    def _delete_rows(self, work: Work) -> Outcome:
        # Of a customer nothing comes back of what there was when its state was deleted: rows of views, and minutes of live numbers.
        at_ms = work.asked_ms if work.viewer is not None else work.state_deleted_ms or work.asked_ms
        # A reprocess writes files that no commit names yet: they would be removed.
        with reprocess_lock.hold(self._driver.settings.postgres_dsn.get_secret_value()):
            report = forget(
                self._driver,
                work.customer_id,
                work.viewer,
                sessions=work.sessions,
                at_ms=at_ms,
                turns=self._turns,
            )
        # Once more: an object whose storing was under way when its session's state was deleted.
        self._delete_recordings(work)
        return report.rows | {"slices": report.slices}

    def _look_at_topics(self, work: Work) -> Outcome:
        now_ms, profile = self._clock_ms(), self._driver.settings.profile
        holding = _HOLDING_CUSTOMERS if work.viewer is None else _HOLDING
        kept = {topic.name: topic.kept_ms_max(profile) for topic in holding}
        return {name: now_ms + ms for name, ms in kept.items() if ms is not None}

    # What has landed.

    def _streams(self) -> list[str]:
        of_rows = [topic.name for topic in self._driver.settings.row_topics]
        return [VIEWS.name, *tables.RAW, *of_rows]

    def _has_landed(self, work: Work, step: Step, names: Sequence[str]) -> bool:
        settings, spark = self._driver.settings, self._driver.spark
        wanted = self._awaited.get((work.id, step))
        if wanted is None:
            others = [name for name in names if name != VIEWS.name]
            ends = dict(landed.ends_of(settings, others))
            if VIEWS.name in names:
                ends |= landed.ends_of(settings.views_kafka, [VIEWS.name])
            wanted = self._awaited[work.id, step] = ends
        have: dict[tuple[str, int], int] = {}
        for name in names:
            folder = tables.RAW[name].name if name in tables.RAW else name
            have |= landed.landed_to(spark, checkpoint(settings, folder))
        return landed.has(have, wanted)


def _problem_of(error: Exception) -> str:
    if isinstance(error, NoObjects):
        return str(error)
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        # Names the table, and nothing of whom is deleted.
        return f"{type(error).__name__}: {error.diag.message_primary}"
    return type(error).__name__


def _subject(work: Work) -> Subject:
    return Subject(work.customer_id, work.viewer, tuple(work.sessions))
