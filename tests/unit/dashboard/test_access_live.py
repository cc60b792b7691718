"""Live pictures and streams behind the guard: whose figures they have, and when they end."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.rim.database.pool import PostgresAway
from tests.unit.dashboard.desk import next_picture
from tests.unit.dashboard.door import (
    ENDED,
    GLOBEX_VIEWER,
    OWNER,
)
from tests.unit.dashboard.guarded_desk import Desk, headers_of, opened
from tests.unit.dashboard.records import live, slice_of


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(tmp_path) as made:
        yield made


async def test_the_live_picture_has_the_customers_of_the_organisation_alone(desk: Desk) -> None:
    desk.board.take_records(
        [
            live(100, viewers_now=3, views_started=1),
            live(100, customer_id="globex", viewers_now=4, slices={"cdn=own": slice_of(viewers_now=4)}),
            live(100, customer_id="globex-tv", viewers_now=5),
            live(100, customer_id="initech", viewers_now=70, slices={"cdn=secret": slice_of(viewers_now=70)}),
        ]
    )
    stream = await desk.client.get("/v1/live/stream", headers=headers_of(GLOBEX_VIEWER))
    while (picture := await next_picture(stream))["state"] != "live":
        pass
    stream.close()
    for content in (picture, await desk.json("/v1/live", GLOBEX_VIEWER)):
        assert {one["customer"] for one in content["customers"]} == {"globex", "globex-tv"}
        assert content["now"]["viewers_now"] == 9
        assert content["totals"]["views_started"] == 0
        assert [one["value"] for one in content["slices"]["cdn"]] == ["own"]
    everything = await desk.json("/v1/live", OWNER)
    assert everything["now"]["viewers_now"] == 82
    assert len(everything["slices"]["cdn"]) == 2
    for path in ("/v1/live", "/v1/live/stream"):
        assert (await desk.get(f"{path}?customer=initech", GLOBEX_VIEWER))[0] == 404


@pytest.mark.thorough
async def test_while_postgres_is_away_nobody_is_let_in_or_thrown_out(desk: Desk) -> None:
    desk.board.take_records([live(100, viewers_now=3)])
    stream = await desk.client.get("/v1/live/stream", headers=headers_of(OWNER))
    while (await next_picture(stream))["state"] != "live":
        pass
    desk.known.problem = PostgresAway("test")
    status, page = await desk.get("/", OWNER)
    assert status == 503
    assert b"You stay logged in" in page
    assert (await desk.get("/v1/live", OWNER))[0] == 503
    assert (await desk.get("/v1/live", ENDED))[0] == 503
    assert (await desk.get("/login", None))[0] == 200
    desk.board.take_records([live(101, viewers_now=9)])
    async with asyncio.timeout(20):
        async for line in stream.content:
            assert not line.startswith(b"data: {")
            if line.startswith(b"event: unconfirmed"):
                break
    desk.known.problem = None
    # The stream is still open, and goes on.
    async with asyncio.timeout(20):
        async for line in stream.content:
            if line.startswith(b"data: {"):
                break
    assert json.loads(line[6:])["now"]["viewers_now"] == 9
    stream.close()


async def test_who_has_no_customer_that_is_counted_waits_and_sees_no_zeros(desk: Desk) -> None:
    desk.board.take_records([live(100, customer_id="acme", viewers_now=3)])
    stream = await desk.client.get("/v1/live/stream", headers=headers_of(OWNER))
    while (await next_picture(stream))["state"] != "live":
        pass
    stream.close()
    picture = await desk.json("/v1/live", GLOBEX_VIEWER)
    assert (picture["state"], picture["now"], picture["series"], picture["totals"]) == ("waiting", None, {}, {})


async def test_a_stream_ends_with_its_session(desk: Desk) -> None:
    desk.board.take_records([live(100, customer_id="globex", viewers_now=3)])
    stream = await desk.client.get("/v1/live/stream", headers=headers_of(GLOBEX_VIEWER))
    while (await next_picture(stream))["state"] != "live":
        pass
    del desk.known.people[GLOBEX_VIEWER]
    desk.board.take_records([live(101, customer_id="globex", viewers_now=9)])
    async with asyncio.timeout(20):
        rest = await stream.content.read()
    assert b"data: {" not in rest
