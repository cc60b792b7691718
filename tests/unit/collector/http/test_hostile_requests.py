"""Whole requests that nobody but an attacker sends, to the listeners of the collector: none is answered 500."""

import pydantic
import pytest

from deploy.local.ports import free_port
from services.rim.admin.admin import AdminServer, Check
from shared.settings import Settings
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import CMCD_RECORD, mux_body, mux_event
from tests.unit.hostile_requests import hostile_bodies, hostile_requests, status_of

PATHS = [
    *("/", "/any", "/cmcd/acme", "/epas/acme", "/v1/beacons", "/v1/beacons.gif", "/v1/traces", "/v1/api-calls"),
    *("/recordings/s-1?sequence=0", "/v1/beacons/schema.json", "/favicon.ico", "/recordings/"),
]
_CALL = b'{"method":"GET","host":"h","path":"/p","status":200,"time_ms":1,"response":{"body":{"a":%s}}}'
BODIES = [
    *(b"", b"{", b"\xff", mux_body(mux_event()), CMCD_RECORD.encode(), _CALL % (b"9" * 400), _CALL % b"1e999"),
    *(
        *hostile_bodies([{"beacons": [{"view_id": "v", "event": "playing", "custom": {"a": 1}}]}], 20),
        b'{"events":[{"a":%s}]}' % (b"9" * 5_000),
        b'{"event":"init","timestamp":%s}' % (b"9" * 400),
    ),
]


@pytest.mark.thorough
async def test_no_request_is_answered_500(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    for request in hostile_requests(1_500, PATHS, BODIES):
        status = await status_of(served.port, request)
        assert status < 500 or status == 503, request[:2_000]
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("path", ["/", "/cmcd/acme", "/v1/beacons?key=acme", "/v1/traces", "/epas/acme"])
async def test_a_user_agent_that_is_no_utf8_costs_no_beacon(served: Served, path: str) -> None:
    body = CMCD_RECORD.encode() if "cmcd" in path else mux_body(mux_event())
    request = (
        b"POST %s HTTP/1.1\r\nHost: x\r\nUser-Agent: T\xc9l\xe9\xff\r\nOrigin: \xff\r\nContent-Length: %d\r\n\r\n%s"
    )
    answer = await served.raw(request % (path.encode(), len(body), body))
    assert int(answer.split()[1]) in {200, 204, 400}
    if path in {"/", "/cmcd/acme"}:
        assert served.stored()[0][1].user_agent == "T?l??"


async def test_a_number_of_400_digits_is_a_number(served: Served) -> None:
    async with served.client.post("/v1/api-calls?key=acme", data=_CALL % (b"9" * 400)) as answer:
        assert answer.status == 200


async def test_no_request_to_the_admin_endpoint_is_answered_500(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    settings = Settings(admin_token=pydantic.SecretStr("admin-token-of-16"))
    server = AdminServer("127.0.0.1", port, settings, is_alive=lambda: Check(True), is_ready=lambda: Check(True))
    server.start()
    try:
        for request in hostile_requests(300, ["/livez", "/readyz", "/metrics", "/"], [b"", b"{"]):
            assert await status_of(port, request) < 500, request[:2_000]
    finally:
        server.stop()
    assert not [record for record in caplog.records if record.exc_info]
