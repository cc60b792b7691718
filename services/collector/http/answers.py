"""Outcomes as HTTP answers: those to try again with a `Retry-After`, and the native format's answer for each beacon."""

import random
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from aiohttp import web

from services.collector.admission.retry_later import RetryLater
from services.collector.intake.otlp import otlp
from services.collector.intake.post import Outcome, Rejected

RETRY_SECONDS_MIN: Final = 2
RETRY_SECONDS_MAX: Final = 10
#: Statuses of native and EPAS for a body that is refused as a whole, by reason; else 400.
STATUSES: Final = {
    "unknown_customer": 401,
    "revoked_key": 410,
    "forbidden_origin": 403,
    "unsigned": 401,
    "too_large": 413,
}
#: Codes of `google.rpc.Status`.
GRPC_INVALID_ARGUMENT: Final = 3
GRPC_UNAVAILABLE: Final = 14
_PIXEL: Final = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")


@dataclass(frozen=True)
class Answer:
    """An answer in JSON."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def retry_after(retry: RetryLater) -> dict[str, str]:
    """When to try again: at a random time, so that clients refused together do not return together."""
    seconds = retry.wait_seconds + random.uniform(RETRY_SECONDS_MIN, RETRY_SECONDS_MAX)
    return {"Retry-After": str(round(seconds))}


def player_retry(retry: RetryLater, *, limited: int) -> web.Response:
    """The answer to players: 503, or `limited` for what is beyond its customer's rate."""
    status = limited if retry.kind == "limited" else 503
    response = web.Response(status=status, headers=retry_after(retry), text="not stored, send again\n")
    if retry.kind in {"slow", "gone", "busy"}:
        # The rest of the body has not arrived.
        response.force_close()
    return response


def native_retry(retry: RetryLater) -> Answer:
    """No beacon is stored, or the outcome is unknown: the client must send all of them again."""
    status = {"limited": 429, "slow": 408}.get(retry.kind, 503)
    return Answer(status, {"reason": retry.kind, "detail": "not stored, send again"}, retry_after(retry))


def native_answer(outcome: Outcome, name: str = "beacons") -> Answer:
    """200 and, by `name`, the outcome of each input; a body without an input gets a 4xx. Neither must be sent again."""
    whole = [rejected for rejected in outcome.rejected if rejected.place is None]
    if whole:
        return Answer(STATUSES.get(whole[0].reason, 400), _why(whole[0]))
    answers: list[dict[str, Any]] = [{"status": "stored"}] * (outcome.accepted + len(outcome.rejected))
    for rejected in outcome.rejected:
        assert rejected.place is not None
        answers[rejected.place] = {"status": "rejected", **_why(rejected)}
    return Answer(200, {name: answers})


def json_answer(answer: Answer) -> web.Response:
    """The answer as aiohttp writes it."""
    return web.Response(
        body=orjson.dumps(answer.body), status=answer.status, headers=answer.headers, content_type="application/json"
    )


def otlp_retry(retry: RetryLater, content_type: str) -> web.Response:
    """Nothing is stored; exporters repeat a request after 429 and 503, at the time in `Retry-After`."""
    status = 429 if retry.kind == "limited" else 503
    response = _otlp(status, otlp.failure(GRPC_UNAVAILABLE, "not stored, send again", content_type), content_type)
    response.headers.update(retry_after(retry))
    if retry.kind in {"slow", "gone", "busy"}:
        response.force_close()
    return response


def otlp_answer(outcome: Outcome, content_type: str) -> web.Response:
    """200, and the number of rejected spans; an invalid body gets a 4xx. Neither must be sent again."""
    whole = [rejected for rejected in outcome.rejected if rejected.place is None]
    if whole:
        failure = otlp.failure(GRPC_INVALID_ARGUMENT, whole[0].detail, content_type)
        return _otlp(STATUSES.get(whole[0].reason, 400), failure, content_type)
    return _otlp(200, otlp.answer(outcome, content_type), content_type)


def _otlp(status: int, body: bytes, content_type: str) -> web.Response:
    answered_type = otlp.JSON if otlp.media_type(content_type) == otlp.JSON else otlp.PROTOBUF
    return web.Response(status=status, body=body, content_type=answered_type)


def pixel_answer() -> web.Response:
    """The image: the answer for every outcome of the beacon, since the client reads nothing else."""
    return web.Response(body=_PIXEL, content_type="image/gif", headers={"Cache-Control": "no-store"})


def _why(rejected: Rejected) -> dict[str, Any]:
    return {"reason": rejected.reason, "detail": rejected.detail}
