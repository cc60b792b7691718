"""Every answer on every route can be read by the page that asked, errors included: a table."""

import asyncio

import orjson
import pytest

from services.collector.intake.sender.customers import Customer, Customers
from tests.unit.collector.http.serving import RULES, Served
from tests.unit.collector.intake.bodies import CMCD_RECORD, epas_event, mux_body, mux_event, native_beacon

ORIGIN = "https://site.example"
CUSTOMERS = Customers(
    {
        "acme": Customer(revoked_keys=("old",)),
        "slow": Customer(beacons_per_second=0.001),
        "other": Customer(origins=frozenset({"https://other.example"})),
    }
)
MUX, CMCD = mux_body(mux_event()), CMCD_RECORD.encode()
NATIVE, EPAS = orjson.dumps(native_beacon()), orjson.dumps(epas_event())
PIXEL = "/v1/beacons.gif?view_id=v&event=play&time_ms=1&key="

ANSWERS = [
    ("POST", "/", MUX, 200),
    ("POST", "/", b"?", 200),
    ("POST", "/", b"x" * 20_000, 200),
    ("POST", "/cmcd/acme", CMCD, 204),
    ("POST", "/cmcd/old", CMCD, 410),
    ("POST", "/epas/acme", EPAS, 200),
    ("POST", "/epas/acme", b"?", 400),
    ("POST", "/epas/stranger", EPAS, 401),
    ("POST", "/epas/acme", b"x" * 20_000, 413),
    ("POST", "/v1/beacons?key=acme", NATIVE, 200),
    ("POST", "/v1/beacons?key=acme", b"?", 400),
    ("POST", "/v1/beacons?key=stranger", NATIVE, 401),
    ("POST", "/v1/beacons?key=other", NATIVE, 403),
    ("POST", "/v1/beacons?key=old", NATIVE, 410),
    ("POST", "/v1/beacons?key=acme", b"x" * 20_000, 413),
    ("GET", PIXEL + "acme", b"", 200),
    ("GET", "/v1/beacons/schema.json", b"", 200),
    ("GET", "/", b"", 200),
    ("GET", "/favicon.ico", b"", 204),
    ("GET", "/nothing", b"", 404),
    ("PUT", "/v1/beacons", NATIVE, 404),
    ("DELETE", "/cmcd/acme", b"", 404),
]
LIMITED = [("/cmcd/slow", CMCD, 429), ("/v1/beacons?key=slow", NATIVE, 429), ("/epas/slow", EPAS, 429)]
STORES = [("/", MUX), ("/cmcd/acme", CMCD), ("/epas/acme", EPAS), ("/v1/beacons?key=acme", NATIVE)]


async def expect_readable(served: Served, method: str, path: str, body: bytes, expected: int) -> None:
    async with served.client.request(method, path, data=body or None, headers={"Origin": ORIGIN}) as answer:
        assert answer.status == expected
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"
        assert answer.headers["Vary"] == "Origin"
        if expected in {429, 503}:
            assert int(answer.headers["Retry-After"]) >= 2
            assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize(("method", "path", "body", "expected"), ANSWERS)
async def test_an_answer_can_be_read(served: Served, method: str, path: str, body: bytes, expected: int) -> None:
    served.rules = RULES.model_copy(update={"customers": CUSTOMERS})
    await expect_readable(served, method, path, body, expected)


@pytest.mark.parametrize(("path", "body", "expected"), LIMITED)
async def test_that_a_customer_is_beyond_its_rate_can_be_read(
    served: Served, path: str, body: bytes, expected: int
) -> None:
    served.rules = RULES.model_copy(update={"customers": CUSTOMERS})
    await expect_readable(served, "POST", path, body, 200 if "cmcd" not in path else 204)
    await expect_readable(served, "POST", path, body, expected)


@pytest.mark.parametrize(("path", "body"), STORES)
async def test_that_nothing_was_stored_can_be_read(served: Served, path: str, body: bytes) -> None:
    served.sink.failing = "queue_full"
    await expect_readable(served, "POST", path, body, 503)


@pytest.mark.parametrize(("path", "body"), STORES)
async def test_that_the_collector_is_at_fault_can_be_read(
    served: Served, path: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(served.sink, "store", broken)
    await expect_readable(served, "POST", path, body, 500)


@pytest.mark.parametrize(("path", "expected"), [("/", b"503"), ("/cmcd/a", b"503"), ("/v1/beacons?key=a", b"408")])
async def test_that_a_body_did_not_come_can_be_read(served: Served, path: str, expected: bytes) -> None:
    head = await served.raw(
        b"POST %s HTTP/1.1\r\nHost: a\r\nOrigin: %s\r\nContent-Length: 9\r\n\r\n{" % (path.encode(), ORIGIN.encode())
    )
    assert head.split()[1] == expected
    assert b"\r\nAccess-Control-Allow-Origin: %s\r\n" % ORIGIN.encode() in head


@pytest.mark.parametrize(
    "path", ["/", "/cmcd/old", "/epas/x", "/v1/beacons", "/v1/beacons.gif", "/v1/traces", "/v1/api-calls", "/a/b?c=d"]
)
@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
async def test_a_preflight_never_fails(served: Served, path: str, method: str) -> None:
    """Not even while nothing can be stored, nor for pages and keys that may not send: that is decided with the beacons."""
    served.rules = RULES.model_copy(update={"customers": CUSTOMERS})
    served.sink.failing = "dead"
    served.drain.begun = True
    headers = {"Origin": ORIGIN, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": "x-a"}
    async with served.client.options(path, headers=headers) as answer:
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert answer.headers["Access-Control-Allow-Headers"] == "x-a"
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    await asyncio.sleep(0)
