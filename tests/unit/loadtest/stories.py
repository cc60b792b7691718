"""Stories written by hand, for tests that check the truth with pencil and paper."""

from dataclasses import replace

from loadtest.story import Moment, Player, Story

PLAYER = Player(
    customer_id="acme",
    view_id="11111111-1111-4111-8111-111111111111",
    client="mux-embed",
    viewer_id="22222222-2222-4222-8222-222222222222",
    video_id="movie-1",
    live=False,
    cdn="fastly",
    name="main",
    playhead_start_ms=0,
    bitrate_start_bps=900_000,
    clock_skew_ms=0,
    batch_size=1,
    reports_requests=False,
    closes_twice=True,
    resend_share=0.0,
)

#: Starts in 500 ms, stalls for 2 s, switches up, seeks for 200 ms, pauses for 5 s, ends, closes: 20 s of playback.
EVENTFUL = (
    Moment(0, "load"),
    Moment(1_000, "start"),
    Moment(1_500, "playing"),
    Moment(4_500, "rebufferstart"),
    Moment(6_500, "rebufferend"),
    Moment(8_500, "rendition", bitrate_bps=1_800_000),
    Moment(9_500, "seekstart"),
    Moment(9_700, "seekend", playhead_ms=60_000),
    Moment(11_700, "pause"),
    Moment(16_700, "resume"),
    Moment(28_700, "ended"),
    Moment(29_000, "close"),
)


def story(*moments: Moment, **player: object) -> Story:
    """These moments, lived by the plain player with some of its habits changed."""
    return Story(replace(PLAYER, **player), arrives_ms=0, moments=moments)  # type: ignore[arg-type]
