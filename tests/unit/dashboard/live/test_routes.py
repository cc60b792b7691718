"""The live picture over HTTP: once, whenever it changes, and of earlier."""

import asyncio
import contextlib
from urllib.parse import quote

import aiohttp
from prometheus_client import REGISTRY

from services.dashboard.live.landed.past import Row
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from shared.schemas.live import BUCKET_MS, PAIR_SEPARATOR, SLICE_VALUE_CHARS_MAX
from tests.unit.dashboard.desk import NOW_MS, SECONDS_MAX, STREAMS_MAX, Desk, next_picture
from tests.unit.dashboard.door import GLOBEX_ADMIN, GLOBEX_VIEWER, cookies
from tests.unit.dashboard.records import live, slice_of


async def test_live_shows_that_nothing_was_counted_yet(desk: Desk) -> None:
    picture = await desk.json("/v1/live")
    assert (picture["state"], picture["now_ms"], picture["shown_until_ms"]) == ("waiting", NOW_MS, None)


async def test_a_stream_sends_the_picture_at_once_and_then_whenever_it_changes(desk: Desk) -> None:
    stream = await desk.client.get("/v1/live/stream")
    assert stream.content_type == "text/event-stream"
    assert (await next_picture(stream))["state"] == "waiting"
    desk.board.take_records([live(100, viewers_now=3)])
    first = await next_picture(stream)
    assert (first["state"], first["now"]["viewers_now"]) == ("live", 3)
    desk.board.take_records([live(101, viewers_now=4)])
    second = await next_picture(stream)
    assert second["series"]["viewers_now"] == [3, 4]
    assert [(one["customer"], one["now"]["viewers_now"]) for one in second["customers"]] == [("acme", 4)]


async def test_customers_are_ordered_by_a_figure_of_enough_viewers_or_views(desk: Desk) -> None:
    figures = {
        "large": {"viewers_now": 900, "rebuffering_now": 9, "views_started": 500, "failures": 40},
        "failing": {"viewers_now": 20, "rebuffering_now": 1, "views_started": 30, "failures": 30},
        "once": {"viewers_now": 1, "rebuffering_now": 1, "views_started": 1, "failures": 1},
        "idle": {"viewers_now": 0},
    }
    # Gauges are of the newest 5 seconds; counts are of all that is shown, as the page shows them.
    gauges = {name: {key: of for key, of in one.items() if key.endswith("_now")} for name, one in figures.items()}
    desk.board.take_records([live(100, customer_id=name, **one) for name, one in figures.items()])
    desk.board.take_records(
        [live(101, customer_id=name, **one) for name, one in (gauges | {"large": figures["large"]}).items()]
    )
    stream = await desk.client.get("/v1/live/stream")
    while (picture := await next_picture(stream))["state"] != "live" or len(picture["series"]["viewers_now"]) < 2:
        pass
    stream.close()

    async def listed(query: str) -> list[str]:
        return [one["customer"] for one in (await desk.json(f"/v1/live?{query}"))["customers"]]

    assert await listed("") == ["large", "failing", "once", "idle"]
    assert await listed("customers_by=failures") == ["failing", "once", "large", "idle"]
    assert await listed("customers_by=failures&customers_min=20") == ["failing", "large"]
    assert await listed("customers_by=rebuffering&customers_order=ascending&customers_min=1") == [
        "large",
        "failing",
        "once",
    ]
    # What is a number of the customer's own is of any number.
    assert await listed("customers_by=starts&customers_min=999") == ["large", "failing", "once", "idle"]
    assert (await desk.json("/v1/live?customers_by=failures&customers_min=20"))["customers_total"] == 4
    await desk.json("/v1/live?customers_by=name", status=400)


async def test_a_broker_that_is_away_shows_in_the_picture_and_so_does_its_return(desk: Desk) -> None:
    desk.board.take_records([live(100, viewers_now=3)])
    stream = await desk.client.get("/v1/live/stream")
    await asyncio.to_thread(desk.board.set_reachable, False)
    # What was shown stays, and is marked as old.
    while (picture := await next_picture(stream))["state"] != "away" or picture["now"] is None:
        pass
    assert picture["now"]["viewers_now"] == 3
    await asyncio.to_thread(desk.board.set_reachable, True)
    while (await next_picture(stream))["state"] != "live":
        pass


async def test_records_may_be_handed_over_from_another_thread(desk: Desk) -> None:
    stream = await desk.client.get("/v1/live/stream")
    await asyncio.to_thread(desk.board.hand_over, [live(100, viewers_now=9)])
    while (picture := await next_picture(stream))["state"] != "live":
        pass
    assert picture["now"]["viewers_now"] == 9


async def test_open_streams_lock_no_page_out(desk: Desk) -> None:
    """With as many as may be, the one that has been open longest ends."""
    streams = [await desk.client.get("/v1/live/stream") for _ in range(STREAMS_MAX)]
    for stream in streams:
        await next_picture(stream)
    page = await desk.client.get("/v1/live/stream")
    await next_picture(page)
    with contextlib.suppress(aiohttp.ClientError):
        async with asyncio.timeout(SECONDS_MAX):
            await streams[0].content.read()
    assert streams[0].content.at_eof() or streams[0].content.exception() is not None
    assert REGISTRY.get_sample_value("playhead_dashboard_streams") == STREAMS_MAX
    for stream in (*streams[1:], page):
        stream.close()


async def test_many_streams_of_one_end_none_of_another(desk: Desk) -> None:
    page = await desk.client.get("/v1/live/stream", cookies=cookies(GLOBEX_VIEWER))
    await next_picture(page)
    many = []
    for _ in range(2 * STREAMS_MAX):
        many.append(await desk.client.get("/v1/live/stream"))
        await next_picture(many[-1])
    for ended in many[:-1]:
        with contextlib.suppress(aiohttp.ClientError):
            async with asyncio.timeout(SECONDS_MAX):
                await ended.content.read()
    # The first one, which has been open longest, goes on.
    desk.board.take_records([live(100, viewers_now=3)])
    await next_picture(page)
    for stream in (page, many[-1]):
        stream.close()


async def test_streams_of_many_callers_of_one_organisation_end_none_of_another(desk: Desk) -> None:
    page = await desk.client.get("/v1/live/stream")
    await next_picture(page)
    many = []
    for who in (GLOBEX_VIEWER, GLOBEX_ADMIN):
        many.append(await desk.client.get("/v1/live/stream", cookies=cookies(who)))
        await next_picture(many[-1])
    with contextlib.suppress(aiohttp.ClientError):
        async with asyncio.timeout(SECONDS_MAX):
            await many[0].content.read()
    desk.board.take_records([live(100, viewers_now=3)])
    await next_picture(page)
    for stream in (page, many[-1]):
        stream.close()


async def test_closing_the_board_ends_every_stream(desk: Desk) -> None:
    stream = await desk.client.get("/v1/live/stream")
    await next_picture(stream)
    desk.board.close()
    async with asyncio.timeout(SECONDS_MAX):
        await stream.content.read()
    assert stream.content.at_eof()
    assert (await desk.json("/v1/live/stream", 503))["type"].endswith("stopping")


async def test_slices_are_of_the_customer_that_is_looked_at_and_follow_the_picture(desk: Desk) -> None:
    assert (await desk.json("/v1/live?customer=acme"))["slices"] == {}
    stream = await desk.client.get("/v1/live/stream")
    await next_picture(stream)
    bucket = NOW_MS // BUCKET_MS
    desk.board.take_records([live(bucket, slices={"cdn=x": slice_of(viewers_now=3)}, viewers_now=4)])
    await next_picture(stream)
    picture = await desk.json("/v1/live?customer=acme")
    assert [(one["value"], one["viewers_now"]) for one in picture["slices"]["cdn"]] == [("x", 3)]
    assert (await desk.json("/v1/live"))["slices"] == picture["slices"]
    assert (await desk.json("/v1/live?customer=globex"))["slices"] == {}
    # The figures of one slice, in the place of the customer's.
    assert picture["now"]["viewers_now"] == 4
    of_slice = await desk.json("/v1/live?customer=acme&slice=cdn%3Dx")
    assert (of_slice["now"]["viewers_now"], of_slice["series"]["viewers_now"]) == (3, [3])
    assert (picture["slices_of"], of_slice["slices_of"], of_slice["others_now"]) == ("", "cdn=x", 0)
    unknown = await desk.json("/v1/live?customer=acme&slice=cdn%3Dy")
    assert unknown["now"]["viewers_now"] == 0
    assert (await desk.json("/v1/live?costumer=acme", 400))["type"].endswith("question")


async def test_the_past_of_the_live_picture_is_asked_of_postgres(desk: Desk) -> None:
    minute_ms = 1_000 * 60_000
    question = f"/v1/live/history?customer=acme&from_ms={minute_ms}&until_ms={minute_ms + 120_000}"
    document = '{"steps":12,"values":{"":{"viewers_now":36}}}'
    desk.past.answer = [Row("", 1_001, document)]
    answer = await desk.json(question)
    assert answer == {
        "from_ms": minute_ms,
        "step_ms": 60_000,
        "dimension": "",
        "values": [{"value": "", "series": {"viewers_now": [None, 3]}}],
    }
    assert [(one.customer, one.dimension) for one in desk.past.asked] == [("acme", "")]
    assert (await desk.json(f"{question}&dimension=password", 400))["type"].endswith("question")
    assert (await desk.json(f"{question}&step_ms=61000", 400))["detail"].startswith("step_ms is")
    # A pair may have two values of the greatest length; no value is longer, and none has what Postgres cannot read.
    longest = "é" * SLICE_VALUE_CHARS_MAX
    pair = f"&dimension=cdn,country&value={longest}{quote(PAIR_SEPARATOR)}{longest}"
    for customer in ("acme", "*"):
        of = question.replace("acme", customer)
        await desk.json(f"{of}{pair}")
        asked = len(desk.past.asked)
        for wrong in (f"{pair}x", "&dimension=cdn&value=%00", "&dimension=cdn&value=a%00"):
            assert (await desk.json(f"{of}{wrong}", 400))["type"].endswith("question")
        assert len(desk.past.asked) == asked
    for error, status in ((PostgresAway(), 503), (NotPublished(), 503), (QueryRefused(), 503), (TimeoutError(), 504)):
        desk.past.answer = error
        await desk.json(question, status)
