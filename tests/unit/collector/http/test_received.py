"""What requests hold is counted for topic `received` once it is stored, and beacons alone."""

from shared.schemas.received import Received
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import mux_body, mux_event

BODY = mux_body(mux_event(pswve="2.4.0"), mux_event(pswve="2.4.0", e=...))


def reported(served: Served) -> list[tuple[str, int, int]]:
    def figures(one: Received) -> tuple[str, int, int]:
        return one.customer_id, one.received, one.rejected

    return [figures(one) for one in served.counts.report(0)]


async def test_beacons_are_counted_once_they_are_stored(served: Served) -> None:
    served.sink.failing = "deadline"
    async with served.client.post("/", data=BODY) as answer:
        assert answer.status == 503
    assert reported(served) == []
    served.sink.failing = None
    async with served.client.post("/", data=BODY) as answer:
        assert answer.status == 200
    assert reported(served) == [("acme", 2, 1)]


async def test_calls_and_spans_that_are_rejected_are_no_beacons(served: Served) -> None:
    for path in ("/v1/api-calls?key=acme", "/v1/traces?key=acme"):
        async with served.client.post(path, data=b"{", headers={"Content-Type": "application/json"}) as answer:
            assert answer.status in (400, 200)
    assert len(served.sink.records) == 2
    assert reported(served) == []
