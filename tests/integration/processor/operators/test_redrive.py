"""What an application rejected, or the object store refused, is given back once the cause is corrected."""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest

from deploy.local.broker import Broker
from services.processor.runtime.operations.redrive import BATCH_BYTES_MAX
from shared import codec, topics
from shared.chunks import CHUNK_BYTES_MAX
from shared.topics import Topic
from tests.integration.applications import recording
from tests.integration.parts.brokers import OF_COLLECTOR, OF_VIEWS, topics_of
from tests.integration.parts.failing import Scene
from tests.integration.parts.feed import beacon, committed
from tests.integration.parts.slots import wait_until
from tests.integration.processor.operators.commanding import Commands
from tests.integration.processor.raising_slot import PROGRAM, RAISES
from tests.refusing_store import refusing_store

pytestmark = pytest.mark.integration

AT_MS = 1_790_000_000_000


@pytest.fixture(scope="module")
def scene_topics() -> Iterable[Topic]:
    return (*OF_VIEWS, *topics_of("traces"), topics.REDRIVEN)


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[Topic]:
    return (*topics_of("recordings"), *OF_COLLECTOR, topics.REDRIVEN)


def encoded(view_id: str, seq: int, event: str, **attrs: object) -> bytes:
    return codec.BEACON.encode(beacon(view_id, seq, event, AT_MS + seq * 1000, **attrs))


def redrive(bootstrap: str, folder: Path, *arguments: str, application: str = "video_views") -> dict[str, int]:
    """What the command says that it did."""
    counts: dict[str, int] = Commands(bootstrap, folder, PROCESSOR_APPLICATION=application).done("redrive", *arguments)
    return counts


def test_rejected_records_are_produced_to_the_input_again_once(scene: Scene) -> None:
    slot = scene.started(program=PROGRAM)
    scene.send(b"acme:garbage", b"{garbage")
    for number in range(20):
        key, view_id = b"acme:raises-%d" % number, f"raises-{number}"
        scene.send(key, encoded(view_id, 1, "viewstart", custom_1=RAISES.decode()))
        scene.also[view_id] = (1, 0, "timeout")
    wait_until(lambda: len(scene.rejected()) == 21, "all of them are rejected")
    assert slot.terminate() == 0
    nothing = {"produced": 0, "before": 0, "rows": 0, "gone": 0}
    where = scene.bootstrap, scene.folder
    assert redrive(*where, "--until", "2020-01-01T00:00:00Z") == nothing
    assert redrive(*where, application="traces") == nothing
    assert redrive(*where, "--from", "2020-01-01T00:00:00Z") == nothing | {"produced": 20}
    # Again, by other arguments.
    assert redrive(*where, "--reason", "fold_failed") == nothing | {"before": 20}
    scene.started()
    scene.expect_truth()
    assert len(scene.rejected()) == 21


def test_recordings_that_the_object_store_refused_are_given_back(own_broker: Broker, tmp_path: Path) -> None:
    # Chunks of the last of those that are refused go back in two transactions.
    sizes = (3_500_000, 3_500_000, 3_500_000, 10_000)
    assert sum(sizes[:2]) < BATCH_BYTES_MAX < sum(sizes[:3]) - CHUNK_BYTES_MAX
    payloads = [recording.Payload("s-1", number, size) for number, size in enumerate(sizes)]
    refused = payloads[:-1]
    with refusing_store() as store, ExitStack() as ending:
        scene = recording.Scene(own_broker, tmp_path, ending)
        for one in refused:
            store.refusals[f"{one.name}$"] = 403
        server = scene.slot(PROCESSOR_OBJECTS="s3://bucket", PROCESSOR_OBJECT_REFUSED_MS="1000", **store.environ)
        wait_until(server.slot.is_ready, "the slot works")
        scene.send(payloads).finish(120)
        wait_until(lambda: payloads[-1].name in store.objects, "the session goes on without what is refused")
        wait_until(lambda: len(recording.index_rows(own_broker.bootstrap)) == 4, "all have a row")
        assert [row.state for row in recording.index_rows(own_broker.bootstrap)] == ["refused"] * 3 + ["stored"]
        rejected = [dict(message.headers() or []) for message in committed(own_broker.bootstrap, topics.REJECTED)]
        assert [headers["reason"] for headers in rejected] == [b"object_refused"] * 12
        store.refusals.clear()
        nothing = {"produced": 0, "before": 0, "rows": 0, "gone": 0}
        arguments = own_broker.bootstrap, tmp_path, "--reason", "object_refused"
        assert redrive(*arguments, application="recordings") == nothing | {"produced": 12}
        assert redrive(*arguments, application="recordings") == nothing | {"before": 12}
        wait_until(lambda: len(recording.index_rows(own_broker.bootstrap)) == 7, "what was given back has a row")
        rows = recording.index_rows(own_broker.bootstrap)[-3:]
        assert sorted((row.sequence, row.state) for row in rows) == [(number, "stored") for number in range(3)]
        assert [row.revision for row in rows] == [5, 6, 7]
        assert {name: store.objects[name] for name in store.objects} == {one.name: one.content for one in payloads}
