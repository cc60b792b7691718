"""Scores against the worked examples of the definitions, and our own where they give none."""

import math

import pytest

from services.processor.applications.video_views.row import scores
from services.processor.applications.video_views.row.scores import GoodRules, Measures

#: Startup time score, Mux guide: 8 s is half of the points.
STARTUP = [(0, 100.0), (400, 95.238), (2_000, 80.0), (8_000, 50.0), (32_000, 20.0)]

#: Smoothness, Mux guide: count, rebuffering ms, watch ms -> the mean of the two parts.
SMOOTHNESS = [
    (0, 0, 60_000, 100.0),
    # One event in five minutes, 1.6 % of the time: 89 and 85, as the published formula gives (the guide's text says 85).
    (1, 4_800, 300_000, (89.443 + 85.214) / 2),
    (2, 30_000, 300_000, (70.711 + 36.788) / 2),
    (0, 0, 0, 100.0),
]

#: Video quality, Mux guide: 200 % for 30 s of 20.5 min (the guide's text says 92; its formula gives 89); none; all the time.
QUALITY = [
    (2.0, 2.0 * 30 / 1230, 89.33),
    (0.0, 0.0, 100.0),
    (1.0, 1.0, 71.892),
]


@pytest.mark.parametrize(("startup_ms", "score"), STARTUP)
def test_startup(startup_ms: int, score: float) -> None:
    assert scores.startup_score(startup_ms) == pytest.approx(score, abs=0.01)


@pytest.mark.parametrize(("count", "rebuffer_ms", "watch_ms", "score"), SMOOTHNESS)
def test_smoothness(count: int, rebuffer_ms: int, watch_ms: int, score: float) -> None:
    assert scores.smoothness_score(count, rebuffer_ms, watch_ms) == pytest.approx(score, abs=0.01)


@pytest.mark.parametrize(("max_upscale", "mean_upscale", "score"), QUALITY)
def test_quality(max_upscale: float, mean_upscale: float, score: float) -> None:
    assert scores.quality_score(max_upscale, mean_upscale) == pytest.approx(score, abs=0.05)


@pytest.mark.parametrize(
    ("failed", "ebvs", "started", "waited_ms", "score"),
    [
        (False, False, True, 0, 100.0),
        (True, False, True, 9_000, 0.0),
        (True, False, False, 9_000, 0.0),
        (False, True, False, 1_000, 50.0),
        (False, True, False, 999, None),
        (False, False, False, 9_000, None),
    ],
)
def test_success(failed: bool, ebvs: bool, started: bool, waited_ms: int, score: float | None) -> None:
    found = scores.success_score(playback_failed=failed, ebvs=ebvs, has_started=started, waited_ms=waited_ms)
    assert found == score


@pytest.mark.parametrize(
    ("success", "parts", "score"),
    [
        (100, [80.0, 80.0, 80.0], 80.0),
        (100, [100.0, 25.0], 50.0),
        (100, [100.0, 25.0, 25.0], (50 + 50 + 25) / 3),
        (50, [], 50.0),
        (0, [100.0, 100.0], 0.0),
    ],
)
def test_overall(success: float, parts: list[float], score: float) -> None:
    assert scores.overall_score(success, parts) == pytest.approx(score)


def measures(**changed: object) -> Measures:
    plain: dict[str, object] = {
        "startup_ms": 1_000,
        "has_started": True,
        "watch_ms": 100_000,
        "rebuffer_count": 0,
        "rebuffer_ms": 0,
        "playback_failed": False,
        "ebvs": False,
        "avg_bitrate_bps": 2_000_000,
    }
    return Measures(**(plain | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "good"),
    [
        ({}, True),
        ({"startup_ms": 4_000}, True),
        ({"startup_ms": 4_001}, False),
        ({"rebuffer_ms": 2_000}, True),
        ({"rebuffer_ms": 2_001}, False),
        ({"avg_bitrate_bps": 499_999}, False),
        ({"avg_bitrate_bps": None}, True),
        ({"playback_failed": True}, False),
        ({"ebvs": True, "startup_ms": None, "watch_ms": 1_999}, None),
        ({"ebvs": True, "startup_ms": None, "watch_ms": 2_000}, False),
        ({"startup_ms": None}, None),
    ],
)
def test_a_good_view_passes_every_threshold(changed: dict[str, object], good: bool | None) -> None:
    assert scores.is_good(measures(**changed), GoodRules()) is good


def test_an_exit_before_the_first_frame_has_no_score_but_success() -> None:
    left = scores.scores(measures(ebvs=True, has_started=False, startup_ms=None, watch_ms=3_000), GoodRules())
    assert (left.score_startup, left.score_smooth, left.score_quality) == (None, None, None)
    assert (left.score_success, left.score_view, left.score_version) == (50.0, 50.0, 1)


def test_the_quality_score_needs_sizes() -> None:
    assert scores.scores(measures(), GoodRules()).score_quality is None
    scaled = measures(upscale_integral=50_000.0, scale_time_ms=100_000, max_upscale=1.0)
    expected = 100 * math.exp(-0.33 * (0.15 * 1 + 0.85 * 0.5))
    assert scores.scores(scaled, GoodRules()).score_quality == pytest.approx(expected, abs=0.01)
