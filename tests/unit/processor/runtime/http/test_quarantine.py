"""What operators see of quarantined keys, and how they release them."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from urllib.request import Request, urlopen

import pytest

from services.processor.runtime.slot.releases import Released
from services.processor.runtime.telemetry.status import QuarantinedKeyStatus
from tests.unit.processor.runtime.http.stand_ins import TOKEN
from tests.unit.processor.runtime.http.test_lookups import Setup, make, setup

__all__ = ["make", "setup"]

HELD = QuarantinedKeyStatus(3, "acme:v1", "YWNtZTp2MQ==", 1_000, "ZeroDivisionError: a bug", 10, 2, 1, 99)
RELEASED = Released([HELD], {"acme:v2": "key b'acme:v2' stays quarantined: DecodeError"}, 3)


@pytest.fixture
def released(setup: Setup) -> list[bytes | None]:
    """What the slot was asked to release."""
    asked: list[bytes | None] = []

    def quarantined() -> list[QuarantinedKeyStatus]:
        asked.append(None)
        return [HELD]

    def release_quarantined(key: bytes, _until: float) -> Future[Released]:
        asked.append(key)
        answer: Future[Released] = Future()
        answer.set_result(RELEASED)
        return answer

    setup.here.worker.queries.quarantined = quarantined
    setup.here.worker.queries.release_quarantined = release_quarantined
    return asked


def post(setup: Setup, query: str) -> dict[str, Any]:
    request = Request(
        f"{setup.url}/quarantine/release?{query}", headers={"Authorization": f"Bearer {TOKEN}"}, method="POST"
    )
    with urlopen(request, timeout=10) as answer:
        answer_body: dict[str, Any] = json.loads(answer.read())
    return answer_body


def test_quarantined_keys_are_listed(setup: Setup, released: list[bytes | None]) -> None:
    status, answer_body, _ = setup.get("/quarantine")
    assert (status, [one["key"] for one in answer_body["keys"]]) == (200, ["acme:v1"])
    assert answer_body["keys"][0]["reason"] == "ZeroDivisionError: a bug"
    assert released == [None]


@pytest.mark.parametrize(("query", "key"), [("key=acme:v1", b"acme:v1"), ("all=1", b""), ("key_base64=/w==", b"\xff")])
def test_keys_are_released_one_or_all(setup: Setup, released: list[bytes | None], query: str, key: bytes) -> None:
    answer = post(setup, query)
    assert [one["key"] for one in answer["keys"]] == ["acme:v1"]
    assert (answer["kept"], answer["left"], answer["problems"]) == (RELEASED.kept, 3, {})
    assert released == [key]


@pytest.mark.parametrize("query", ["", "key_base64=!"])
def test_a_release_names_what_it_releases(setup: Setup, released: list[bytes | None], query: str) -> None:
    with pytest.raises(OSError, match="400"):
        post(setup, query)
    assert released == []


def test_the_list_wants_the_token(setup: Setup, make: Callable[[str], Setup]) -> None:
    assert setup.get("/quarantine", Authorization="Bearer wrong")[0] == 401
