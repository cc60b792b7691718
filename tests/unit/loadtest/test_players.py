"""The players against a collector in memory that fails now and then: the truth is what it has stored."""

import argparse
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from loadtest import audience, players
from loadtest.players import loopback_url


class FakeCollector:
    """Stores every beacon that it answers 2xx; fails every `fails_every`th POST, having stored nothing."""

    def __init__(self, fails_every: int = 0) -> None:
        self.fails_every = fails_every
        self.posts = self.failed = 0
        self.stored: Counter[tuple[str, int]] = Counter()
        self.bodies: list[bytes] = []

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.posts += 1
        if self.fails_every and self.posts % self.fails_every == 0:
            self.failed += 1
            return web.Response(status=503, headers={"Access-Control-Allow-Origin": "*"})
        self.bodies.append(body)
        for beacon in self._beacons(request.path, body):
            self.stored[beacon] += 1
        return web.Response(headers={"Access-Control-Allow-Origin": "*"})

    @staticmethod
    def _beacons(path: str, body: bytes) -> list[tuple[str, int]]:
        if path == "/":
            return [(event["xid"], event["xsqno"]) for event in json.loads(body)["events"]]
        lines = body.decode().strip().split("\n")
        return [
            (re.search(r'sid="([^"]+)"', line)[1], int(re.search(r"sn=(\d+)", line)[1]))  # type: ignore[index]
            for line in lines
        ]


@pytest.fixture
async def collector() -> AsyncIterator[tuple[FakeCollector, str]]:
    fake = FakeCollector()
    app = web.Application()
    app.router.add_post("/{path:.*}", fake.answer)
    async with TestServer(app) as server:
        yield fake, f"http://127.0.0.1:{server.port}"


async def run_players(url: str, truth: Path, views: int = 150) -> dict[str, Any]:
    await players.run(url, views=views, seconds=20, seed=3, truth=truth, retry_seconds=100, speed=20)
    return read(truth)


def read(truth: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(truth.read_bytes())
    return result


@pytest.mark.thorough
@pytest.mark.parametrize("fails_every", [0, 4])
async def test_the_truth_counts_what_the_collector_has_stored(
    collector: tuple[FakeCollector, str], tmp_path: Path, fails_every: int
) -> None:
    fake, url = collector
    fake.fails_every = fails_every
    truth = await run_players(url, tmp_path / "truth.json")
    totals = truth["totals"]
    assert truth["done"] is True
    assert totals["views_unresolved"] == 0
    assert (totals["posts"], totals["posts_failed"]) == (fake.posts, fake.failed)
    assert totals["beacons_acked"] == fake.stored.total()
    assert totals["duplicates"] == fake.stored.total() - len(fake.stored)
    assert totals["duplicates"] > 0
    assert totals["views_started"] == len(truth["views"]) > 100
    assert totals["views_never_started"] > 0
    counts = Counter(view for view, _ in fake.stored)
    assert {view["view_id"]: view["beacon_count"] for view in truth["views"]} == {
        view["view_id"]: counts[view["view_id"]] for view in truth["views"]
    }
    for view in truth["views"]:
        assert truth["began_ms"] <= view["started_ms"] <= view["acked_until_ms"] <= view["left_ms"]
    in_views = sum(view["beacon_count"] for view in truth["views"])
    assert totals["beacons_dropped"] == len(fake.stored) - in_views


async def test_views_whose_posts_are_never_answered_have_no_truth(
    collector: tuple[FakeCollector, str], tmp_path: Path
) -> None:
    fake, url = collector
    fake.fails_every = 1
    ledger = await players.run(
        url, views=3, seconds=11, seed=3, truth=tmp_path / "truth.json", retry_seconds=0, speed=20
    )
    assert ledger.totals.views_unresolved == 3
    assert read(tmp_path / "truth.json")["views"] == []


@pytest.mark.parametrize(
    "url", ["http://localhost:8080", "http://127.0.0.1:1", "https://[::1]:8443", "http://127.9.9.9/x"]
)
def test_urls_of_this_machine_are_accepted(url: str) -> None:
    assert loopback_url(url) == url


@pytest.mark.parametrize(
    "url", ["http://example.com", "http://10.0.0.1", "http://localhost.example.com", "ftp://localhost", "localhost", ""]
)
def test_any_other_url_is_refused(url: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        loopback_url(url)


@pytest.mark.parametrize(
    "arguments", [["--url", "http://example.com"], ["--views", "0"], ["--views", "1000000"], ["--seconds", "3"]]
)
def test_the_command_refuses_what_is_out_of_bounds(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        players.main([*arguments, "--truth", str(tmp_path / "truth.json")])
    assert exit_info.value.code == 2
    assert not (tmp_path / "truth.json").exists()


async def test_an_audience_plays_one_view_after_the_other_and_keeps_no_account(
    collector: tuple[FakeCollector, str],
) -> None:
    fake, url = collector
    await audience.play(url, viewers=3, seed=5, speed=50, stories=2)

    assert len({view for view, _ in fake.stored}) == 6
