"""The collector over HTTP, with a sink in memory: what is answered, and what is stored by then."""

import gzip
import json
import time
from typing import Any

import orjson
import pytest
from prometheus_client import REGISTRY

from services.collector.intake.sender.customers import Customer, Customers
from tests.unit.collector.http.serving import REJECTED_BYTES_PER_SECOND, RULES, Served
from tests.unit.collector.intake.bodies import CMCD_RECORD, RECV_TIME_MS, epas_event, mux_body, mux_event, native_beacon


@pytest.mark.parametrize("path", ["/", "/android", "/any/where?and=how"])
async def test_mux_beacons_may_be_posted_anywhere(served: Served, path: str) -> None:
    headers = {"Content-Type": "text/plain", "User-Agent": "player"}
    async with served.client.post(path, data=mux_body(mux_event()), headers=headers) as answer:
        assert (answer.status, await answer.read()) == (200, b"")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    ((topic, beacon),) = served.stored()
    assert topic == "beacons"
    assert (beacon.view_id, beacon.user_agent, beacon.ip_trunc) == ("view-1", "player", "127.0.0.0/24")
    assert (beacon.recv_time_ms, beacon.collector_id) == (RECV_TIME_MS, "c-1")
    assert beacon.batch_id


async def test_a_packed_body_reaches_the_intake_as_it_came(served: Served) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    good, bad = gzip.compress(mux_body(mux_event())), gzip.compress(b"nothing")
    for body in (good, bad):
        async with served.client.post("/android", data=body, headers=headers) as answer:
            assert answer.status == 200
    (first, _), (second, why) = served.stored()
    assert (first, second) == ("beacons", "rejected")
    assert (why["reason"], why["content-encoding"], why["origin"]) == (b"undecodable", b"gzip", b"/android")
    assert served.sink.records[1].value == bad


async def test_cmcd_records_are_posted_to_a_customers_path(served: Served) -> None:
    headers = {"Content-Type": "application/cmcd"}
    async with served.client.post("/cmcd/acme", data=CMCD_RECORD.encode(), headers=headers) as answer:
        assert (answer.status, await answer.read()) == (204, b"")
    ((topic, beacon),) = served.stored()
    assert (topic, beacon.source, beacon.customer_id, beacon.view_id) == ("beacons", "cmcd", "acme", "s-1")


async def test_a_cmcd_player_without_sequence_numbers_gets_a_warning(served: Served) -> None:
    unnumbered = CMCD_RECORD.replace(",sn=", ",xn=")
    assert unnumbered != CMCD_RECORD
    async with served.client.post("/cmcd/acme", data=unnumbered.encode()) as answer:
        assert (answer.status, "no sn" in await answer.text()) == (400, True)
    # A body with a record that is stored is answered like any other.
    async with served.client.post("/cmcd/acme", data=f"{CMCD_RECORD}\n{unnumbered}".encode()) as answer:
        assert answer.status == 204
    assert [topic if topic == "beacons" else one["reason"] for topic, one in served.stored()] == [
        b"unnumbered",
        "beacons",
        b"unnumbered",
    ]


async def test_what_cannot_be_understood_is_stored_and_answered_like_the_rest(served: Served) -> None:
    body = mux_body(mux_event(), mux_event(ake="no good"))
    for path, data, status in (
        ("/", body, 200),
        ("/", b"?", 200),
        ("/cmcd/acme", b"?", 204),
        ("/cmcd/a%20b", b"e=t", 204),
    ):
        async with served.client.post(path, data=data) as answer:
            assert answer.status == status
    assert [topic for topic, _ in served.stored()] == ["beacons", "rejected", "rejected", "rejected", "rejected"]
    assert orjson.loads(served.sink.records[1].value) == mux_event(ake="no good")


async def test_what_is_not_stored_is_answered_503_and_when_to_try_again(served: Served) -> None:
    before = REGISTRY.get_sample_value("playhead_collector_unstored_total", {"reason": "queue_full"}) or 0
    served.sink.failing = "queue_full"
    for path, body in (("/", mux_body(mux_event(), mux_event(xsqno=8))), ("/cmcd/acme", CMCD_RECORD.encode())):
        async with served.client.post(path, data=body, headers={"Origin": "https://site.example"}) as answer:
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) > 0
            assert answer.headers["Access-Control-Allow-Origin"] == "https://site.example"
    assert served.stored() == []
    after = REGISTRY.get_sample_value("playhead_collector_unstored_total", {"reason": "queue_full"})
    assert after == before + 3


async def posted(served: Served, path: str, document: Any, **headers: str) -> tuple[int, Any, Any]:
    data = document if isinstance(document, bytes) else json.dumps(document)
    async with served.client.post(path, data=data, headers=headers) as answer:
        return answer.status, orjson.loads(await answer.read()), answer.headers


async def test_native_beacons_are_answered_one_by_one(served: Served) -> None:
    batch = {"beacons": [native_beacon(), native_beacon(event="dance"), native_beacon(seq=2)]}
    status, body, _ = await posted(served, "/v1/beacons?key=acme", batch)
    assert status == 200
    assert [one["status"] for one in body["beacons"]] == ["stored", "rejected", "stored"]
    assert body["beacons"][1]["reason"] == "invalid"
    assert [topic for topic, _ in served.stored()] == ["beacons", "beacons", "rejected"]

    status, body, _ = await posted(served, "/v1/beacons", native_beacon(), Authorization="Bearer other")
    assert (status, body) == (200, {"beacons": [{"status": "stored"}]})
    assert served.stored()[-1][1].customer_id == "other"


async def test_an_unknown_key_and_a_revoked_key_have_different_reasons(served: Served) -> None:
    customers = Customers(
        {"acme": Customer(keys=("new",), revoked_keys=("old",), origins=frozenset({"https://a.example"}))}
    )
    served.rules = RULES.model_copy(update={"customers": customers})
    answers = [await posted(served, f"/v1/beacons?key={key}", native_beacon()) for key in ("stranger", "old", "new")]
    assert [(status, body.get("reason")) for status, body, _ in answers] == [
        (401, "unknown_customer"),
        (410, "revoked_key"),
        (200, None),
    ]
    status, body, headers = await posted(served, "/v1/beacons?key=new", native_beacon(), Origin="https://b.example")
    assert (status, body["reason"]) == (403, "forbidden_origin")
    assert headers["Access-Control-Allow-Origin"] == "https://b.example"
    for path, expected in (("/cmcd/old", 410), ("/cmcd/stranger", 204), ("/cmcd/new", 204), ("/", 200)):
        async with served.client.post(path, data=CMCD_RECORD) as answer:
            assert answer.status == expected
    assert (await posted(served, "/epas/old", epas_event()))[0] == 410
    assert [(r.customer_id if topic == "beacons" else r["reason"]) for topic, r in served.stored()] == [
        b"unknown_customer",
        b"revoked_key",
        "acme",
        b"forbidden_origin",
        b"revoked_key",
        b"unknown_customer",
        "acme",
        b"undecodable",
        b"revoked_key",
    ]


async def test_a_customer_beyond_its_rate_gets_a_retry_after(served: Served) -> None:
    served.rules = RULES.model_copy(update={"customers": Customers({"acme": Customer(beacons_per_second=0.1)})})
    statuses = [(await posted(served, "/v1/beacons?key=acme", native_beacon()))[0] for _ in range(2)]
    assert statuses == [200, 429]
    status, body, headers = await posted(served, "/v1/beacons?key=acme", native_beacon())
    assert (status, body["reason"]) == (429, "limited")
    assert int(headers["Retry-After"]) >= 10
    for path, data, expected in (("/cmcd/acme", CMCD_RECORD, 429), ("/", mux_body(mux_event()), 503)):
        async with served.client.post(path, data=data) as answer:
            assert (answer.status, "Retry-After" in answer.headers) == (expected, True)
    assert len(served.stored()) == 1


async def test_a_native_answer_lists_what_is_not_stored_and_has_a_retry_after(served: Served) -> None:
    served.sink.failing = "queue_full"
    status, body, headers = await posted(served, "/v1/beacons?key=acme", native_beacon())
    assert (status, body["reason"]) == (503, "unstored")
    assert int(headers["Retry-After"]) >= 2
    assert await posted(served, "/v1/beacons?key=acme", b"x" * 200_000)
    async with served.client.get("/v1/beacons.gif?key=acme&view_id=v&event=play&time_ms=1") as answer:
        assert answer.status == 503


@pytest.mark.parametrize(("body", "status"), [(b"?", 400), (b" " * 10_001, 413)])
async def test_a_body_that_holds_no_native_beacons_gets_a_4xx(served: Served, body: bytes, status: int) -> None:
    assert (await posted(served, "/v1/beacons?key=acme", body))[0] == status
    assert [topic for topic, _ in served.stored()] == ["rejected"]


async def test_a_pixel_stores_a_beacon(served: Served) -> None:
    async with served.client.get("/v1/beacons.gif?key=acme&view_id=v&event=play&time_ms=1&video_id=x") as answer:
        assert (answer.status, answer.content_type) == (200, "image/gif")
        assert (await answer.read()).startswith(b"GIF89a")
        assert answer.headers["Cache-Control"] == "no-store"
    ((_, beacon),) = served.stored()
    assert (beacon.event, beacon.view_id, beacon.attrs) == ("play", "v", {"video_id": "x"})
    async with served.client.head("/v1/beacons.gif?key=acme&view_id=v&event=play&time_ms=2") as answer:
        assert answer.status == 404
    assert len(served.stored()) == 1


async def test_a_query_of_any_bytes_is_answered(served: Served) -> None:
    good = b"GET /v1/beacons.gif?key=acme&view_id=v&event=play&time_ms=1&%s HTTP/1.1\r\nHost: a\r\n\r\n"
    for strange in (b"title=\xff\xfe", b"\xed\xa0\x80=1", b"title=%ff%fe", b"title=%", b"&&==", b"x=%00"):
        assert (await served.raw(good % strange)).split()[1] in {b"200", b"400"}
    assert (await served.raw(b"POST /cmcd/\xff HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n?")).split()[1] in {
        b"204",
        b"400",
    }


async def test_the_schema_is_published(served: Served) -> None:
    async with served.client.get("/v1/beacons/schema.json") as answer:
        assert answer.status == 200
        assert json.loads(await answer.read())["title"] == "Playhead beacons"


async def test_an_epas_session_is_given_its_id(served: Served) -> None:
    status, body, _ = await posted(served, "/epas/acme", epas_event(event="init", sessionId=...))
    assert (status, body) == (200, {"sessionId": "new-session", "valid": True, "heartbeatInterval": 30_000})
    web = {"Origin": "https://site.example", "X-EPAS-Version": "0.3.1", "X-EPAS-Event": "heartbeat"}
    assert (await posted(served, "/epas/acme", epas_event(), **web))[:2] == (
        200,
        {"sessionId": "session-1", "valid": True},
    )
    status, body, _ = await posted(served, "/epas/acme", epas_event(sessionId=...))
    assert (status, body["valid"]) == (400, False)
    (_, first), (_, second), (topic, _) = served.stored()
    assert (first.view_id, second.playhead_ms, topic) == ("new-session", 12_500, "rejected")


async def test_headers_beyond_their_limit_are_refused(served: Served) -> None:
    assert b" 400 " in await served.raw(b"POST / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 33_000 + b"\r\n\r\n")


async def test_made_up_keys_cannot_fill_the_topic_of_rejected_inputs(served: Served) -> None:
    """Ten seconds' worth of bytes is kept, from strangers and from customers each; what is not kept is counted."""

    def dropped() -> float:
        return (
            REGISTRY.get_sample_value("playhead_collector_rejected_dropped_total", {"reason": "unknown_customer"}) or 0
        )

    served.rules = RULES.model_copy(update={"customers": Customers({"acme": Customer(keys=("acme-web",))})})
    before, began = dropped(), time.monotonic()
    # The second is a key that nobody has, though it is a customer's id.
    for key in ("nobody", "acme"):
        for _ in range(20):
            async with served.client.post(f"/cmcd/{key}", data=b"x" * 5_000) as answer:
                assert answer.status == 204
    kept = len(served.stored())
    # What has come in meanwhile, however slow the machine.
    room_bytes = REJECTED_BYTES_PER_SECOND * (time.monotonic() - began)
    assert 10 <= kept <= 12 + room_bytes / 5_000
    assert dropped() - before == 40 - kept
    async with served.client.post("/cmcd/acme-web", data=b"?" + CMCD_RECORD.encode()) as answer:
        assert answer.status == 204
    assert served.stored()[-1][1]["reason"] == b"undecodable"


async def test_the_client_is_who_the_proxies_say_and_its_agent_is_understood(served: Served) -> None:
    headers = {
        "User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "X-Forwarded-For": "1.1.1.1, 203.0.113.7, 127.0.0.9",
    }
    async with served.client.post("/", data=mux_body(mux_event()), headers=headers) as answer:
        assert answer.status == 200
    headers |= {"Sec-GPC": "1"}
    async with served.client.post("/", data=mux_body(mux_event(mvrid="v", vid="x")), headers=headers) as answer:
        assert answer.status == 200
    (_, public), (_, private) = served.stored()
    assert (public.ip_trunc, public.browser, public.is_bot) == ("203.0.113.0/24", "Googlebot", True)
    assert public.user_agent == headers["User-Agent"]
    assert (private.ip_trunc, private.user_agent, private.browser) == (None, None, "Googlebot")
    assert private.attrs == {"video_id": "x"}


async def test_a_page_with_credentials_may_read_the_answer(served: Served) -> None:
    headers = {"Origin": "https://site.example", "Cookie": "a=b"}
    async with served.client.post("/", data=mux_body(mux_event()), headers=headers) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == "https://site.example"
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"
        assert answer.headers["Vary"] == "Origin"


@pytest.mark.parametrize("path", ["/", "/cmcd/acme", "/epas/acme", "/v1/beacons", "/android", "/never/heard/of"])
async def test_every_path_may_be_posted_to_from_every_page(served: Served, path: str) -> None:
    headers = {
        "Origin": "https://site.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-custom",
    }
    async with served.client.options(path, headers=headers) as answer:
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == "https://site.example"
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]
        assert answer.headers["Access-Control-Allow-Headers"] == "content-type,x-custom"
        assert int(answer.headers["Access-Control-Max-Age"]) >= 3_600


async def test_what_is_no_http_is_answered_400_and_fills_no_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    assert b" 400 " in await served.raw(b"GET nonsense\r\n\r\n")
    assert b" 400 " in await served.raw(b"\x16\x03\x01\x00\xa5\r\n\r\n")
    assert caplog.records == []


async def test_somebody_with_a_browser_sees_what_this_is(served: Served) -> None:
    async with served.client.get("/") as answer:
        assert (answer.status, await answer.text()) == (200, "Playhead collector\n")
    async with served.client.get("/favicon.ico") as answer:
        assert answer.status == 204
    async with served.client.get("/elsewhere") as answer:
        assert answer.status == 404
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
    async with served.client.put("/", data=b"x") as answer:
        assert answer.status == 404
    assert served.stored() == []


async def test_a_collector_that_drains_asks_clients_to_leave_and_still_stores(served: Served) -> None:
    assert served.drain.readiness(served.sink).ok
    served.drain.begun = True
    assert not served.drain.readiness(served.sink).ok
    async with served.client.post("/", data=mux_body(mux_event())) as answer:
        assert answer.status == 200
        assert answer.headers["Connection"] == "close"
    assert len(served.stored()) == 1


async def test_a_dead_sink_makes_the_collector_unready(served: Served) -> None:
    await served.sink.close(0)
    assert served.drain.readiness(served.sink).why == "closed"


async def test_requests_and_beacons_are_counted(served: Served) -> None:
    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(f"playhead_collector_{name}", labels) or 0.0

    def counts() -> list[float]:
        return [
            value("requests_total", route="mux", status="200"),
            value("beacons_accepted_total", source="mux"),
            value("rejected_total", reason="invalid"),
            value("produce_seconds_count"),
        ]

    before = counts()
    body = json.dumps({"events": [mux_event(), mux_event(xsqno=8), {}]}).encode()
    async with served.client.post("/", data=body) as answer:
        assert answer.status == 200
    assert [after - earlier for after, earlier in zip(counts(), before, strict=True)] == [1, 2, 1, 1]
