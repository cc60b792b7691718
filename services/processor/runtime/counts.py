"""Counts at the edges of the runtime, a checkpoint at a time; never in the fold."""

from collections import Counter

from services.processor.engine.checkpoint import Checkpoint
from services.rim.metrics import counter, histogram
from shared import metrics


def committed(application: str, partition: int, checkpoint: Checkpoint, seconds: float) -> None:
    """A checkpoint is durable, `seconds` after its cut."""
    at = str(partition)
    counter(metrics.PROCESSOR_COMMITS).labels(application, at, "committed", "").inc()
    histogram(metrics.PROCESSOR_COMMIT_SECONDS).labels(application, at).observe(seconds)
    counter(metrics.PROCESSOR_RECORDS).labels(application).inc(checkpoint.records)
    for reason, number in checkpoint.rejected.items():
        counter(metrics.PROCESSOR_REJECTED).labels(application, at, reason).inc(number)
    for topic, number in Counter(output.topic for output in checkpoint.outputs).items():
        counter(metrics.PROCESSOR_OUTPUTS).labels(application, at, topic).inc(number)


def commit_failed(application: str, partition: int, outcome: str, code: str) -> None:
    """A checkpoint was dropped: aborted, unclear, fenced or application_failed; `code` is Kafka's, where it had one."""
    counter(metrics.PROCESSOR_COMMITS).labels(application, str(partition), outcome, code).inc()


def unwaited(application: str, records: int) -> None:
    """Records were folded though an input that was waited for might still have had an earlier one."""
    if records:
        counter(metrics.PROCESSOR_UNWAITED).labels(application).inc(records)


def flushed(seconds: float) -> None:
    """The local store has the committed layer."""
    histogram(metrics.PROCESSOR_FLUSH_SECONDS).observe(seconds)
