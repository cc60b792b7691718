"""Session recordings on a real broker: kills of collector, slot and broker; the object store away; memory; read back in order."""

import asyncio
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from shared.topics import Topic
from tests.integration.applications.recording import (
    CUSTOMER,
    Payload,
    Scene,
    expect_stored,
    index_rows,
    made_payloads,
    posted_at_once,
    streamed_back,
    when,
)
from tests.integration.collector.collecting import Collector
from tests.integration.parts.brokers import OF_COLLECTOR, topics_of
from tests.integration.parts.lookup_slots import TOKEN
from tests.integration.parts.slots import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (*topics_of("recordings"), *OF_COLLECTOR)


@pytest.fixture
def scene(own_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as ending:
        yield Scene(own_broker, tmp_path, ending)


def test_payloads_are_stored_once_and_in_order_through_kills_of_collector_slot_and_broker(scene: Scene) -> None:
    payloads = made_payloads(80, 6, 25_000_000)
    first, second = scene.slot(0), scene.slot(1)
    for server in (first, second):
        wait_until(server.slot.is_ready, "the slot works")
    sender = scene.send(payloads)
    when(lambda: sender.stored >= 15, "payloads are stored")
    scene.collector.child.kill()
    scene.collector.__enter__()
    when(lambda: sender.stored >= 25, "payloads are stored again")
    first.slot.kill()
    first.slot.start()
    when(lambda: sender.stored >= 40, "payloads are stored again")
    scene.broker.kill()
    scene.broker.start()
    when(lambda: sender.stored >= 60, "payloads are stored again")
    second.slot.kill()
    second.slot.start()
    sender.finish(240)
    expect_stored(scene.broker.bootstrap, scene.objects, payloads, 120)
    assert sender.tries > len(payloads)
    session = payloads[len(payloads) // 2].session
    mine = sorted((one for one in payloads if one.session == session), key=lambda one: one.sequence)
    wait_until(lambda: first.get(f"/recordings/{session}/index?customer={CUSTOMER}")[0] == 200, "the session is found")
    back = asyncio.run(streamed_back(first.url, TOKEN, session))
    assert back == [(one.sequence, one.content) for one in mine]
    assert second.slot.terminate() == 0, second.slot.log_tail()


def test_an_object_that_was_stored_before_the_crash_is_stored_again_and_has_one_row(scene: Scene) -> None:
    server = scene.slot(PROCESSOR_CRASH_AT="media_stored")
    payloads = [Payload("s-0", number, 2_500_000) for number in range(3)]
    sender = scene.send(payloads)
    wait_until(lambda: not server.slot.is_running, "the slot has stored an object and died")
    assert server.slot.reached("media_stored")
    assert (scene.objects / payloads[0].name).exists()
    assert index_rows(scene.broker.bootstrap) == []
    server.slot.arm(PROCESSOR_CRASH_AT="")
    server.slot.start()
    sender.finish(120)
    expect_stored(scene.broker.bootstrap, scene.objects, payloads, 60)


def test_an_object_store_that_is_away_holds_up_nothing_but_its_objects(scene: Scene) -> None:
    payloads = made_payloads(12, 3, 1_200_000)
    # A file stands where the customer's folder is to be.
    scene.objects.mkdir()
    (scene.objects / CUSTOMER).write_text("in the way")
    server = scene.slot()
    wait_until(server.slot.is_ready, "the slot works")
    sender = scene.send(payloads)
    sender.finish(120)
    wait_until(lambda: bool(server.slot.events("media_failed")), "storing has failed")
    wait_until(lambda: all(row["lag_records"] == 0 for row in server.partitions()), "everything is folded")
    assert index_rows(scene.broker.bootstrap) == []
    (scene.objects / CUSTOMER).unlink()
    expect_stored(scene.broker.bootstrap, scene.objects, payloads, 120)


async def test_one_payload_is_given_out_as_it_came(scene: Scene) -> None:
    server = scene.slot()
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "Authorization": f"Bearer {CUSTOMER}"}
    async with aiohttp.ClientSession() as client:
        url = f"{scene.collector.url}/recordings/s-9?sequence=0"
        async with client.post(url, data=io.BytesIO(b"not gzip at all"), headers=headers) as answer:
            assert answer.status == 200
    path = f"/recordings/s-9/0?customer={CUSTOMER}"
    token = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=token, auto_decompress=False) as client:
        _, stored, body = await _answer(client, server.url + path, 200)
        assert body == b"not gzip at all"
        assert (stored["Playhead-Content-Type"], stored["Content-Encoding"]) == ("application/json", "gzip")
        assert "sandbox" in stored["Content-Security-Policy"]
        for path, expected in ((f"/recordings/s-9/1?customer={CUSTOMER}", 404), ("/recordings/none", 404)):
            # A session may lie in any partition, of which the slot has perhaps not taken all yet.
            status, _, _ = await _answer(client, server.url + path, expected)
            assert status == expected, path


async def _answer(client: aiohttp.ClientSession, url: str, expected: int) -> tuple[int, Mapping[str, str], bytes]:
    """Status, headers and body, once a slot is ready to give the `expected` one; TimeoutError after 60 s without."""
    waits_for = {503, 404} - {expected}
    async with asyncio.timeout(60):
        while True:
            try:
                async with client.get(url) as answer:
                    if answer.status not in waits_for:
                        return answer.status, answer.headers, await answer.read()
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


def test_many_uploads_at_once_take_little_memory(scene: Scene) -> None:
    payloads = [Payload(f"s-{number}", 0, 10_000_000) for number in range(20)]
    # An address may use a quarter of the uploads.
    folder = scene.folder / "many"
    folder.mkdir()
    with Collector(scene.broker.bootstrap, folder, free_port(), recording_uploads_max="80") as collector:
        assert asyncio.run(posted_at_once(collector.url, payloads)) == [200] * len(payloads)
        assert collector.peak_bytes() < 300_000_000
