"""Deletes alert rules and incidents, and what applications learned of a customer; of a viewer what people wrote of it there."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from services.accounts.core.deletions import Step
from services.alerts.store import forgetting
from services.finalizer.jobs.deletions import forgetting_records
from services.finalizer.jobs.deletions.forgetting_records import Ends
from services.finalizer.serving.deletion_requests import DeletionRequests, Work
from services.finalizer.warehouse import landed
from shared.settings import Settings
from shared.topics import ALERT_EVENTS, ALERT_RULES, API_CALLS

#: The group of the service that lands incidents.
_NOTIFICATIONS: Final = "notifications"


class Learned:
    """One a process. A step that was cut off is done again: what was deleted before stays counted."""

    def __init__(self, settings: Settings, requests: DeletionRequests) -> None:
        self._settings = settings
        self._requests = requests
        #: By request and step: what was deleted, and where the records end by which the processor deletes too.
        self._produced: dict[tuple[str, Step], tuple[Mapping[str, int], Ends]] = {}
        #: By request, where incidents' changes ended once the processor had none left.
        self._events: dict[str, Ends] = {}

    def withdraw_rules(self, work: Work) -> Mapping[str, int] | None:
        """Deletes a customer's rules, and what the processor has of its alerts; None: it does not know yet.

        The first thing of all: else people are notified that its figures fall, and that its incidents are over.
        """
        return {} if work.viewer is not None else self._withdraw(work, Step.RULES, lambda: ())

    def delete(self, work: Work, apis: Callable[[], Iterable[bytes]]) -> Mapping[str, int] | None:
        """Deletes what alerts and APIs learned of a customer since, and its incidents; None: others have not come so far.

        `apis` are the keys of its APIs. Of a viewer it deletes what people wrote. Raises `KafkaException` and psycopg's errors.
        """
        viewer = work.viewer
        if viewer is not None:
            return self._requests.delete(
                work, Step.LEARNED, lambda connection: forgetting.forget_viewer(connection, work.customer_id, viewer)
            )
        withdrawn = self._withdraw(work, Step.LEARNED, apis)
        if withdrawn is None:
            return None
        # No incident of it changes any more: once those that have are landed, nothing lands again.
        if work.id not in self._events:
            self._events[work.id] = landed.ends_of(self._settings, [ALERT_EVENTS.name])
        if not forgetting_records.is_beyond(self._settings, _NOTIFICATIONS, self._events[work.id]):
            return None
        deleted = self._requests.delete(
            work, Step.LEARNED, lambda connection: forgetting.delete_incidents(connection, work.customer_id)
        )
        del self._events[work.id], self._produced[work.id, Step.LEARNED]
        return deleted

    def _withdraw(self, work: Work, step: Step, apis: Callable[[], Iterable[bytes]]) -> Mapping[str, int] | None:
        """Withdraws rules and produces the records of the processor, once; what was deleted, once the processor has done it too."""
        if (work.id, step) not in self._produced:
            records = [(ALERT_RULES, work.customer_id.encode()), *((API_CALLS, key) for key in apis())]
            ends: dict[tuple[str, int], int] = {}

            def publish() -> None:
                _, produced = forgetting_records.produce(self._settings, work.id, records)
                ends.update(produced)

            deleted = self._requests.delete(
                work, step, lambda connection: forgetting.withdraw_rules(connection, work.customer_id, publish)
            )
            self._produced[work.id, step] = deleted, ends
        deleted, produced_ends = self._produced[work.id, step]
        return deleted if forgetting_records.are_folded(self._settings, produced_ends) else None
