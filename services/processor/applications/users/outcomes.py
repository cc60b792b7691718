"""outcomes: how requests ended, kept for waiting clients and for repetitions with the same idempotency key.

Bounded by time, each by its deadline, and by number: the places form a ring, and a new outcome replaces the one in its place.
"""

from typing import Final

import msgspec

from services.processor.applications.users.settings import UserRules
from services.processor.engine.application.application import Context, Store, StoreSpec
from shared.schemas.user_command import ClientRequest


class Outcome(msgspec.Struct, frozen=True, array_like=True):
    """How a request ended, stored under `outcome_key`."""

    fingerprint: str
    #: HTTP's, with the body: the user or the problem as JSON, or nothing.
    status: int
    body: bytes
    #: The user's; None without a user.
    version: int | None = None
    #: Where in the ring it was given its place.
    place: int = 0
    #: Whether the same request, sent again, ends the same.
    is_final: bool = True
    #: The request's `submission`.
    submission: str = ""

    def answers(self, submission: str) -> bool:
        """Whether it is the outcome of this request: a refusal for now is only that of the request that was refused."""
        return self.is_final or self.submission == submission


OUTCOMES: Final = StoreSpec[Outcome](
    name="outcomes", id=4, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(Outcome).decode
)
#: Of each place the key of the outcome that has it, under the place's number in 8 bytes.
PLACES: Final = StoreSpec[bytes](name="outcome_places", id=5, encode=bytes, decode=bytes)
#: How many places were given out so far, under `_NEXT`.
LEDGER: Final = StoreSpec[int](
    name="outcome_ledger", id=6, encode=msgspec.msgpack.encode, decode=msgspec.msgpack.Decoder(int).decode
)
_NEXT: Final = b"next"


def outcome_key(user_id: bytes, request_id: str) -> bytes:
    """The row key of an outcome."""
    return user_id + b"\x00" + request_id.encode()


class Outcomes:
    """The outcomes of one partition."""

    def __init__(self, context: Context, rules: UserRules) -> None:
        self._context = context
        self._rules = rules
        self._outcomes: Store[Outcome] = context.store(OUTCOMES)
        self._places: Store[bytes] = context.store(PLACES)
        self._ledger: Store[int] = context.store(LEDGER)

    def has_final(self, user_id: bytes, request: ClientRequest) -> bool:
        """Whether it is known for good how the request ended."""
        outcome = self._outcomes.get(outcome_key(user_id, request.id))
        return outcome is not None and outcome.is_final

    def put(self, user_id: bytes, request: ClientRequest, outcome: Outcome) -> None:
        """The request has ended."""
        key = outcome_key(user_id, request.id)
        place = self._ledger.get(_NEXT) or 0
        self._ledger.put(_NEXT, place + 1)
        at = (place % self._rules.outcomes_max).to_bytes(8, "big")
        former = self._places.get(at)
        if former is not None:
            displaced = self._outcomes.get(former)
            # It may have got another place since, or be gone.
            if displaced is not None and displaced.place == place - self._rules.outcomes_max:
                self._outcomes.delete(former)
        self._places.put(at, key)
        kept_ms = self._rules.idempotency_ms if request.is_keyed else self._rules.outcome_ms
        self._outcomes.put(key, msgspec.structs.replace(outcome, place=place), self._context.clock_ms + kept_ms)

    def forget(self, key: bytes) -> None:
        """Its time is over."""
        self._outcomes.delete(key)
