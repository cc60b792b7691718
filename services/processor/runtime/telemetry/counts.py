"""Counters, increased once per checkpoint at the edges of the runtime; never in the fold."""

from collections import Counter

import structlog

from services.processor.engine.core.checkpoint import Checkpoint
from services.rim.telemetry.metrics import begin, counter, histogram
from shared import metrics
from shared.schemas.rejected import APPLICATION_FAILED
from shared.topics import LATE

log = structlog.get_logger(__name__)


class Counts:
    """The outcomes of one partition's checkpoints since this slot has it; the metrics continue over the life of the process."""

    def __init__(self, application: str, partition: int) -> None:
        self._application = application
        self._partition = str(partition)
        #: Checkpoints dropped, by Kafka's code, or by the outcome where it had none.
        self.dropped: Counter[str] = Counter()
        #: Records and rows rejected, by reason.
        self.rejected: Counter[str] = Counter()
        self.late = 0
        begin(metrics.PROCESSOR_REJECTED, [application], [self._partition], APPLICATION_FAILED)

    def committed(self, checkpoint: Checkpoint, seconds: float) -> None:
        """A checkpoint is durable, `seconds` after its cut."""
        application, at = self._application, self._partition
        counter(metrics.PROCESSOR_COMMITS).labels(application, at, "committed", "").inc()
        histogram(metrics.PROCESSOR_COMMIT_SECONDS).labels(application, at).observe(seconds)
        counter(metrics.PROCESSOR_RECORDS).labels(application).inc(checkpoint.records)
        self.rejected.update(checkpoint.rejected)
        if checkpoint.rejected:
            log.warning("rejected", partition=int(at), reasons=checkpoint.rejected)
        for reason, number in checkpoint.rejected.items():
            counter(metrics.PROCESSOR_REJECTED).labels(application, at, reason).inc(number)
        outputs = Counter(output.topic for output in checkpoint.outputs)
        self.late += outputs[LATE.name]
        for topic, number in outputs.items():
            counter(metrics.PROCESSOR_OUTPUTS).labels(application, at, topic).inc(number)

    def failed(self, outcome: str, code: str) -> None:
        """A checkpoint was dropped: aborted, unclear, fenced or application_failed; `code` is Kafka's, where it had one."""
        self.dropped[code or outcome] += 1
        counter(metrics.PROCESSOR_COMMITS).labels(self._application, self._partition, outcome, code).inc()


def unwaited(application: str, records: int) -> None:
    """Records were folded though an input that was waited for might still have had an earlier one."""
    if records:
        counter(metrics.PROCESSOR_UNWAITED).labels(application).inc(records)


def flushed(seconds: float) -> None:
    """The local store has the committed layer."""
    histogram(metrics.PROCESSOR_FLUSH_SECONDS).observe(seconds)
