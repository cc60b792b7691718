"""Whether a partition's state is divided among as many partitions as there are now: else its views would be split in two."""

from services.processor.engine.division import sources_of
from services.processor.engine.state.meta import Meta
from services.processor.runtime.kafka.metas import last_meta
from services.processor.runtime.kafka.refusals import WorkerFailed
from services.processor.runtime.plan import Plan, first_partitions


class NotDivided(WorkerFailed):
    """The partitions have grown, and the state has not moved to them."""


def check_division(plan: Plan, partition: int, meta: Meta | None) -> None:
    """Raises `NotDivided`; `ReadingFailed` and `KafkaException` where the broker does not say.

    `meta` is the position of the partition, None before its first commit. Then its rows may still be in the partition that it was
    divided from.
    """
    first, now = first_partitions(plan.settings, plan.application), plan.partitions
    if meta is not None:
        _check(plan, partition, meta, first, now)
        return
    for source in sources_of(partition, now, first):
        of_source = last_meta(plan.settings, plan.application, source)
        if of_source is not None:
            _check(plan, source, of_source, first, now)


def _check(plan: Plan, partition: int, meta: Meta, first: int, now: int) -> None:
    divided = meta.partitions or first
    if divided != now:
        topic = plan.application.inputs[0].name
        raise NotDivided(
            f"the state of {plan.application.name} in partition {partition} is divided among {divided} partitions, and {now} are"
            f" declared. With PLAYHEAD_BEACON_PARTITIONS as it was, nothing is moved; to move the rest: stop the slots, then"
            f" `python -m deploy.topics grow {topic} {max(now, divided)}` (docs/growing.md)"
        )
