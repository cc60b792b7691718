"""Fencing: the reasons for which the group fences this process. Another process has joined under the slot's id, or there is none.

The second happens if the coordinator was lost while this process joined. Then the client joins again, the group keeps the member
of the request that hung, and fences one of the two. That member has no process. The group drops it when its session is over.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final, cast

import structlog
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from services.processor.runtime.kafka.ownership import Group, owner_of
from services.processor.runtime.kafka.refusals import SlotFenced, WorkerFailed
from services.processor.runtime.plan import Plan
from services.rim.kafka.connection import client_config

log = structlog.get_logger(__name__)

ASK_SECONDS: Final = 0.5
ANSWER_SECONDS_MAX: Final = 2.0
#: What the coordinator may take, beyond a session, to drop a member that has no process.
DROP_SECONDS_MAX: Final = 4.0
#: Without an answer of the group for so long beyond that, it is not known whether the slot has another process.
UNANSWERED_SECONDS_MAX: Final = 30.0


class MembershipLost(WorkerFailed):
    """The group has fenced this process, and the slot has no other. Start it again."""


def outcome_of(plan: Plan, fenced: SlotFenced) -> WorkerFailed:
    """`fenced` where another process has the slot, else `MembershipLost`. Waits for a session: a member without a process ends."""
    admin = AdminClient(client_config(plan.settings, f"{plan.application.name}.fencing"))

    def slots() -> Iterable[str]:
        groups = cast(list[Group], admin.list_groups(plan.application.id, timeout=ANSWER_SECONDS_MAX))
        return [owner_of(member.client_id).slot for group in groups for member in group.members]

    is_replaced = stays(plan.slot, slots, seconds=plan.settings.session_ms / 1000 + DROP_SECONDS_MAX)
    if is_replaced:
        return fenced
    unknown = "; the group does not say whether it has another process" if is_replaced is None else ""
    return MembershipLost(
        f"the group has dropped this process, and the slot has no other: start it again{unknown} ({fenced})"
    )


def stays(
    slot: str,
    slots: Callable[[], Iterable[str]],
    *,
    seconds: float,
    unanswered_seconds_max: float = UNANSWERED_SECONDS_MAX,
) -> bool | None:
    """Whether `slot` is among the `slots` of the group's members after `seconds` still; None while the group does not answer."""
    began_at = time.monotonic()
    while True:
        try:
            is_there = slot in slots()
        except KafkaException as error:
            log.warning("group_unanswered", code=error.args[0].name())
            if time.monotonic() - began_at >= seconds + unanswered_seconds_max:
                return None
        else:
            if not is_there:
                return False
            if time.monotonic() - began_at >= seconds:
                return True
        time.sleep(ASK_SECONDS)
