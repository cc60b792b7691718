"""Views of a month as an installation has them: what the page must show follows from them alone."""

import random
import zlib
from typing import Any, Final

import msgspec

from services.processor.applications.video_views.bounds import TIMELINE_EVENTS_MAX
from shared.schemas.view import TimelineEvent, View
from tests.unit.query.parts.recounting import DAY_MS, HOUR_MS

MINUTE_MS: Final = 60_000
TITLES: Final = ("Cup final", "Big Buck Bunny", "Evening news", "Sintel", "Tears of Steel")
CDNS: Final = ("akamai", "fastly", "cloudfront")
COUNTRIES: Final = {"DE": (3320, 3209), "FR": (3215, 12322), "US": (7922, 701), "BR": (28573,)}
BROWSERS: Final = ("Chrome", "Safari", "Firefox")
VERSIONS: Final = ("2.3.0", "2.4.0")
#: Of custom dimension `plan`.
PLANS: Final = ("basic", "gold", "trial")
#: What goes wrong in the last half hour: a CDN in one network, for one player version.
INCIDENT: Final = {"cdn": "fastly", "country": "DE", "asn": 3320, "player_version": "2.4.0"}
VIEWER: Final = "viewer-x"
#: Of viewer X: what happened on the page was recorded.
SESSION: Final = "session-of-x"
#: How long each video is that is no live stream.
LENGTH_MS: Final = 10 * MINUTE_MS
#: A customer whose first views came within this hour: nothing says what is usual there.
NEWCOMER: Final = "newcomer"
#: Where the release of 18:00 brought an error that nobody had before.
NEW_ERROR: Final = "DECODER_STALL"
LONG_TITLE: Final = "The film whose title takes all the room that a title may ever use up"[:64]


def month(now_ms: int, seed: int = 3) -> list[View]:
    """The views of customers acme and globex in the 30 days up to now; more of them in the last day."""
    chance = random.Random(seed)
    views = [_any(chance, f"view-{n}", now_ms - chance.randrange(30 * DAY_MS)) for n in range(1_400)]
    views += [_any(chance, f"recent-{n}", now_ms - chance.randrange(26 * HOUR_MS)) for n in range(700)]
    views += [_any(chance, f"last-{n}", now_ms - chance.randrange(50 * MINUTE_MS)) for n in range(300)]
    views += [_of_incident(chance, f"stalled-{n}", now_ms - chance.randrange(25 * MINUTE_MS)) for n in range(80)]
    return views


def first_hour(now_ms: int) -> list[View]:
    """The views of the newcomer in the 50 minutes up to now."""
    chance = random.Random(11)
    views = []
    for number in range(600):
        title = {"video_title": LONG_TITLE} if number % 8 == 0 else {}
        view = _any(chance, f"first-{number}", now_ms - chance.randrange(50 * MINUTE_MS), customer_id=NEWCOMER, **title)
        is_hit = all(getattr(view, name) == value for name, value in INCIDENT.items())
        failed = {"playback_failed": True, "end_reason": "error", "error_code": "MEDIA_ERR_NETWORK"}
        views.append(msgspec.structs.replace(view, **failed) if is_hit and chance.random() < 0.8 else view)
    return views


def watched_by_x(at_ms: int) -> View:
    """The view of viewer X that began at 20:13: it stalled twice, and failed."""
    events = [
        TimelineEvent(at_ms=0, event="viewstart"),
        TimelineEvent(at_ms=1_200, event="playing", playhead_ms=0, bitrate_bps=4_000_000),
        TimelineEvent(at_ms=60_000, event="rebufferstart", playhead_ms=58_800, bitrate_bps=4_000_000),
        TimelineEvent(at_ms=64_000, event="warning"),
        TimelineEvent(at_ms=68_000, event="playing", playhead_ms=58_800, bitrate_bps=1_500_000),
        TimelineEvent(at_ms=90_000, event="rebufferstart", playhead_ms=80_800),
        TimelineEvent(at_ms=95_000, event="error", playhead_ms=80_800),
    ]
    fields: dict[str, Any] = {
        "customer_id": "acme",
        "viewer_user_id": VIEWER,
        "video_title": TITLES[0],
        "watch_ms": 95_000,
        "playing_ms": 80_800,
        "rebuffer_count": 2,
        "rebuffer_ms": 13_000,
        "error_code": "MEDIA_ERR_NETWORK",
        "error_message": "the segment never came",
        "playback_failed": True,
        "end_reason": "error",
        "events": events,
        "session_id": SESSION,
    }
    return _view("view-of-x", at_ms, at_ms + 95_000, random.Random(1), **fields)


def watched_for_hours(at_ms: int) -> View:
    """A view of three hours that stalled again and again: its row has its first 200 events, of 20 minutes."""
    stalls = [
        TimelineEvent(at_ms=6_000 * number, event="rebufferstart" if number % 2 else "playing", bitrate_bps=3_000_000)
        for number in range(1, TIMELINE_EVENTS_MAX)
    ]
    fields: dict[str, Any] = {
        "customer_id": "acme",
        "video_title": TITLES[0],
        "watch_ms": 3 * HOUR_MS,
        "playing_ms": 2 * HOUR_MS,
        "rebuffer_count": 200,
        "rebuffer_ms": HOUR_MS,
        "startup_ms": 6_000,
        "error_code": "LATE",
        "events": [TimelineEvent(at_ms=0, event="viewstart"), *stalls],
    }
    return _view("view-of-hours", at_ms, at_ms + 3 * HOUR_MS, random.Random(2), **fields)


def _any(chance: random.Random, name: str, end_ms: int, **given: Any) -> View:
    country = chance.choice([*COUNTRIES, "DE"])
    cdn = chance.choice(CDNS)
    title = chance.choice(TITLES)
    version = chance.choice(VERSIONS)
    fails, leaves = chance.random() < 0.04, chance.random() < 0.06
    plays = not fails and not leaves
    watch_ms = chance.randrange(30_000, 40 * MINUTE_MS) if plays else chance.randrange(1_000, 20_000)
    share = chance.choice([0, 0, 0, 0.004, 0.01, 0.03]) * (3 if title == "Sintel" else 1)
    bitrate_bps = 2_500_000 + zlib.crc32(name.encode()) % 1_000_000
    fields: dict[str, Any] = {
        "customer_id": "globex" if chance.random() < 0.25 else "acme",
        "country": country,
        "asn": chance.choice(COUNTRIES[country]),
        "cdn": cdn,
        "video_title": title,
        "player_version": version,
        "browser": chance.choice(BROWSERS),
        "watch_ms": watch_ms,
        "playing_ms": round(watch_ms * (1 - share)) if plays else 0,
        "rebuffer_ms": round(watch_ms * share) if plays else 0,
        "rebuffer_count": chance.randrange(1, 4) if share and plays else 0,
        "startup_ms": round(chance.lognormvariate(7.0 if country != "BR" else 7.7, 0.5)) if plays else None,
        "startup_unknown": None if plays else "not_started",
        "startup_failed": fails,
        "playback_failed": fails,
        "ebvs": leaves,
        "error_code": chance.choice(["MEDIA_ERR_NETWORK", "MANIFEST_404"]) if fails else None,
        "error_message": "a message" if fails else None,
        "end_reason": "error" if fails else "clean",
        "score_view": None if leaves else round(0.0 if fails else 100 - 900 * share, 2),
        "spi_good": None if leaves else bool(plays and share < 0.01),
        "avg_bitrate_bps": bitrate_bps if plays else None,
        "bitrate_integral": bitrate_bps * watch_ms if plays else 0,
        "bitrate_time_ms": watch_ms if plays else 0,
        **given,
    }
    return _view(name, end_ms - watch_ms, end_ms, chance, **fields)


def _of_incident(chance: random.Random, name: str, end_ms: int) -> View:
    watch_ms = chance.randrange(5 * MINUTE_MS, 15 * MINUTE_MS)
    fields: dict[str, Any] = {
        "customer_id": "acme",
        "video_title": chance.choice(TITLES),
        "browser": chance.choice(BROWSERS),
        "startup_ms": 1_500,
        "watch_ms": watch_ms,
        "playing_ms": round(0.65 * watch_ms),
        "rebuffer_ms": round(0.35 * watch_ms),
        "rebuffer_count": 9,
        "error_code": NEW_ERROR if chance.random() < 0.1 else None,
        "avg_bitrate_bps": 1_000_000,
        "bitrate_integral": 1_000_000 * watch_ms,
        "bitrate_time_ms": watch_ms,
        "score_view": 20.0,
        "spi_good": False,
        **INCIDENT,
    }
    return _view(name, end_ms - watch_ms, end_ms, chance, **fields)


def _view(name: str, begin_ms: int, end_ms: int, chance: random.Random, **fields: Any) -> View:
    given: dict[str, Any] = {
        # Of some by another client, whose start-up times are not comparable.
        "source": "cmcd" if zlib.crc32(name.encode()) % 8 == 0 else "mux",
        "day": begin_ms // DAY_MS,
        "first_append_ms": begin_ms,
        "last_append_ms": end_ms,
        "view_start_ms": begin_ms,
        "view_end_ms": end_ms,
        "end_reason": "clean",
        "view_dropped": False,
        "viewer_user_id": f"viewer-{chance.randrange(400)}",
        "video_id": f"id of {fields['video_title']}",
        "device": chance.choice(["phone", "tv", "desktop"]),
        "os": chance.choice(["Android", "iOS", "Windows"]),
        "player_name": "Player",
        "stream_type": "live" if fields.get("video_title") == TITLES[0] else "vod",
        "beacon_count": 12,
        "complete": True,
        "custom": {"plan": PLANS[zlib.crc32(name.encode()) % len(PLANS)]},
        **_played(name, fields),
        **fields,
    }
    return View(schema_version=1, view_id=name, revision=1, **given)


def _played(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Which parts of a video a view played: of some to its end, of some one minute twice, of some nothing is known."""
    if fields["video_title"] == TITLES[0] or not fields["playing_ms"]:
        return {}
    digest = zlib.crc32(name.encode())
    reached_ms = min(LENGTH_MS, 30_000 + digest % LENGTH_MS)
    again = [[2 * MINUTE_MS, 3 * MINUTE_MS]] if digest % 3 == 0 and reached_ms > 3 * MINUTE_MS else []
    ranges = [[0, reached_ms], *again] if digest % 5 else []
    return {"video_duration_ms": LENGTH_MS, "max_playhead_ms": reached_ms, "playback_ranges": ranges}
