"""Messages, their signature, attempts and lanes."""

import asyncio
import os

import aiohttp
import pytest

from services.rim.http.signing import SecretWrong, headers, key_of
from services.webhooks.__main__ import EXIT_SETTINGS, main
from services.webhooks.delivery import Delivery, Policy
from services.webhooks.lanes import Lanes, ReadRecord
from services.webhooks.message import Message, message_of
from shared.codec import Undecodable
from tests.unit.webhooks.anomalies import revision
from tests.unit.webhooks.receiver import SECRET, receiving

POLICY = Policy(attempts_max=4, backoff_ms=100, backoff_ms_max=250)


def test_a_message_is_signed_as_the_specification_says() -> None:
    # The specification's libraries have this vector in their tests.
    signed = headers(key_of(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert (signed["webhook-id"], signed["webhook-timestamp"]) == ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330")
    assert key_of("a secret in words") == b"a secret in words"
    with pytest.raises(SecretWrong) as refused:
        key_of("whsec_no base64")
    assert "no base64" in str(refused.value)
    assert "whsec_no" not in str(refused.value)


def test_openings_and_closings_are_sent_each_under_an_id_that_stays() -> None:
    opened, closed = message_of(revision(1)), message_of(revision(3, state="closed"))
    assert message_of(revision(2)) is None
    assert opened is not None
    assert closed is not None
    assert b'"type":"api_anomaly.opened","timestamp":"2026-09-21T' in opened.body
    assert b'"type":"api_anomaly.closed"' in closed.body
    assert opened == message_of(revision(1))
    others = [revision(1, host="b"), revision(1, path="/"), revision(1, customer_id="b"), revision(1, opened_ms=1)]
    found = [message_of(one) for one in others]
    assert len({opened.id, closed.id, *(one.id for one in found if one is not None)}) == 6
    with pytest.raises(Undecodable):
        message_of(b"{}")


def test_waits_double_up_to_a_bound_and_are_drawn_by_lot() -> None:
    assert [POLICY.wait_ms(failed, 1.0) for failed in (1, 2, 3, 9)] == [100, 200, 250, 250]
    assert POLICY.wait_ms(2, 0.25) == 50


async def delivered(status_of: object, message: Message) -> tuple[str | None, list[int], list[float]]:
    """The outcome, the statuses of all attempts, and the waits between them, s."""
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    with receiving(status_of) as receiver:  # type: ignore[arg-type]
        async with aiohttp.ClientSession() as session:
            delivery = Delivery(session, receiver.url, key_of(SECRET), POLICY, wait=wait)
            outcome = await delivery.deliver(message)
    assert all(one.is_signed for one in receiver.got)
    return outcome, [one.status for one in receiver.got], waits


async def test_a_receiver_that_fails_at_first_has_its_message_in_the_end() -> None:
    outcome, statuses, waits = await delivered(lambda _, before: (503, 302, 200)[before], Message("a", b"{}"))
    assert (outcome, statuses) == (None, [503, 302, 200])
    assert len(waits) == 2
    assert all(0 <= wait <= 0.2 for wait in waits)


async def test_a_message_is_given_up_after_its_last_attempt() -> None:
    outcome, statuses, waits = await delivered(lambda *_: 500, Message("a", b"{}"))
    assert (outcome, statuses, len(waits)) == ("answered 500", [500] * 4, 3)


async def test_a_receiver_that_is_gone_gets_no_further_request() -> None:
    outcome, statuses, _ = await delivered(lambda *_: 410, Message("a", b"{}"))
    assert (outcome, statuses) == ("answered 410", [410])


async def test_a_missing_answer_is_reported_without_the_address() -> None:
    async with aiohttp.ClientSession() as session:
        delivery = Delivery(session, "http://127.0.0.1:1/?token=t0p", b"key", Policy(1, 1, 1))
        assert await delivery.deliver(Message("a", b"{}")) == "no answer: ClientConnectorError"


def taken(partition: int, offset: int) -> ReadRecord:
    return ReadRecord("t", partition, offset, None, None)


async def test_a_lane_keeps_its_order_and_holds_up_no_other() -> None:
    done: list[tuple[int, int]] = []
    others, waits = asyncio.Event(), asyncio.Event()

    async def work(one: ReadRecord) -> None:
        if one.partition == 0:
            await waits.wait()
        done.append((one.partition, one.offset))
        if len(done) == 3:
            others.set()

    lanes = Lanes(work, pytest.fail)
    for offset in range(3):
        lanes.add(taken(0, offset))
        lanes.add(taken(1, offset))
    await asyncio.wait_for(others.wait(), 30)
    assert (done, lanes.pending) == ([(1, 0), (1, 1), (1, 2)], 3)
    waits.set()
    await lanes.end(30)
    assert (done[3:], lanes.pending) == ([(0, 0), (0, 1), (0, 2)], 0)


async def test_lanes_that_are_dropped_deliver_no_more_and_a_fault_is_reported() -> None:
    faults: list[BaseException] = []
    began, fault = asyncio.Event(), asyncio.Event()

    async def work(one: ReadRecord) -> None:
        if one.partition == 1:
            raise RuntimeError("a fault")
        began.set()
        await asyncio.Event().wait()

    def on_death(error: BaseException) -> None:
        faults.append(error)
        fault.set()

    lanes = Lanes(work, on_death)
    for offset in range(3):
        lanes.add(taken(0, offset))
    await asyncio.wait_for(began.wait(), 30)
    lanes.drop([("t", 0), ("t", 7)])
    lanes.add(taken(1, 0))
    await asyncio.wait_for(fault.wait(), 30)
    await lanes.end(0)
    assert ([str(one) for one in faults], lanes.pending) == (["a fault"], 0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "WEBHOOKS_URL must be set"),
        ({"WEBHOOKS_URL": "ftp://h/t0p", "WEBHOOKS_SECRET": SECRET}, "WEBHOOKS_URL=(hidden)"),
        ({"WEBHOOKS_URL": "http://h", "WEBHOOKS_SECRET": "whsec_!!!!!!!!!!!!!!!!!"}, "no base64"),
    ],
)
def test_wrong_settings_are_refused_and_secrets_not_printed(
    given: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("WEBHOOKS_")]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert main() == EXIT_SETTINGS == 2
    printed = capfd.readouterr()
    assert expected in printed.err
    assert "t0p" not in printed.err + printed.out
