"""Outcomes: which are kept when they are too many."""

from typing import Any, cast

from services.processor.applications.users.outcomes import OUTCOMES, Outcome, Outcomes, outcome_key
from services.processor.applications.users.settings import UserRules
from services.processor.engine.application.application import Context
from shared.schemas.user_command import ClientRequest


class Rows(dict[bytes, Any]):
    """A store in memory."""

    def put(self, key: bytes, row: Any, deadline_ms: int = 0) -> None:
        self[key] = row

    def delete(self, key: bytes) -> None:
        del self[key]


class Stores:
    """Stands in for a core's context."""

    clock_ms = 1_000

    def __init__(self) -> None:
        self.rows: dict[str, Rows] = {}

    def store(self, spec: Any) -> Rows:
        return self.rows.setdefault(spec.name, Rows())


def keyed(name: str) -> ClientRequest:
    return ClientRequest(name, "fingerprint", is_keyed=True)


def test_the_oldest_goes_and_one_that_was_stored_again_keeps_its_newer_place() -> None:
    context = Stores()
    outcomes = Outcomes(cast("Context", context), UserRules().model_copy(update={"outcomes_max": 3}))
    kept = context.rows[OUTCOMES.name]
    refused, done = Outcome("fingerprint", 503, b"", is_final=False), Outcome("fingerprint", 200, b"")
    outcomes.put(b"u", keyed("a"), refused)
    assert not outcomes.has_final(b"u", keyed("a"))
    for name in "ba":
        outcomes.put(b"u", keyed(name), done)
    assert outcomes.has_final(b"u", keyed("a"))
    outcomes.put(b"u", keyed("c"), done)
    assert set(kept) == {outcome_key(b"u", name) for name in "abc"}, "a's first place was given away, not its second"
    outcomes.put(b"u", keyed("d"), done)
    assert set(kept) == {outcome_key(b"u", name) for name in "acd"}
    outcomes.put(b"u", keyed("e"), done)
    assert set(kept) == {outcome_key(b"u", name) for name in "cde"}
