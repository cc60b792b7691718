"""Ads of CMCD plays: which breaks stand before, within and after the content, and what starts with them."""

import msgspec

from shared.schemas.beacon import Beacon
from tests.unit.processor.applications.video_views.beacons import Drive, cmcd
from tests.unit.processor.applications.video_views.row.test_definitions import ad, row_of


def test_ads_of_cmcd_stand_before_within_and_after_the_content(drive: Drive) -> None:
    # CTA, events abs, as, ae, sk, abe. Mux, ad metrics: pre-roll before the first frame of content, post-roll after its end.
    story = [
        cmcd(0, "viewstart", 0, sta="s"),
        ad(cmcd(1, "ad", 100, sta="s"), "abs"), ad(cmcd(2, "ad", 100, sta="s"), "as"),
        ad(cmcd(3, "ad", 2_100, sta="s"), "ae"), ad(cmcd(4, "ad", 2_100, sta="s"), "abe"),
        cmcd(5, "playing", 2_500, sta="p"),
        ad(cmcd(6, "ad", 5_000, sta="a"), "abs"), ad(cmcd(7, "ad", 5_000, sta="a"), "as"),
        ad(cmcd(8, "ad", 6_000, sta="a"), "sk"), ad(cmcd(9, "ad", 6_000, sta="a"), "abe"),
        cmcd(10, "playing", 6_000, sta="p"), cmcd(11, "ended", 9_000, sta="e"),
        ad(cmcd(12, "ad", 9_100, sta="e"), "abs"), ad(cmcd(13, "ad", 9_100, sta="e"), "as"),
        ad(cmcd(14, "ad", 9_600, sta="e"), "ae"),
    ]  # fmt: skip
    row = row_of(drive, story)
    assert (row.ad_breaks, row.ad_preroll_breaks, row.ad_midroll_breaks, row.ad_postroll_breaks) == (3, 1, 1, 1)
    assert (row.ad_attempts, row.ad_impressions, row.ad_errors) == (3, 3, 0)
    assert (row.ad_playing_ms, row.ad_preroll_playing_ms) == (3_500, 2_000)
    # The pre-roll's frame is the first; the content's comes 2,500 ms after the wish, of which the break took 2,000.
    assert (row.startup_ms, row.content_startup_ms) == (100, 500)


def preroll(*, first: str = "ps:p") -> list[Beacon]:
    """A CMCD play whose client says `sta=p` while its pre-roll of 5 s plays, and in the rest of the break."""
    frame = msgspec.structs.replace(
        cmcd(5, "playing" if first == "ps:p" else "heartbeat", 6_600, sta="p"), source_event=first
    )
    return [
        cmcd(0, "viewstart", 0, sta="s"),
        ad(cmcd(1, "ad", 300, sta="s"), "abs"),
        ad(cmcd(2, "ad", 1_000, sta="p"), "as:p"),
        ad(cmcd(3, "ad", 6_000, sta="p"), "ae:p"),
        ad(cmcd(4, "ad", 6_100, sta="p"), "abe:p"),
        frame,
        ad(cmcd(6, "ad", 60_000, sta="p"), "abs:p"),
        ad(cmcd(7, "ad", 61_000, sta="p"), "as:p"),
        ad(cmcd(8, "ad", 66_000, sta="p"), "abe:p"),
        cmcd(9, "ended", 70_000, sta="e"),
    ]


def test_a_preroll_that_its_client_calls_playing_is_the_first_frame_and_no_content(drive: Drive) -> None:
    row = row_of(drive, preroll())
    assert (row.startup_ms, row.startup_unknown) == (1_000, None)
    # From the start to the content's first frame, 6,600, less the break of 5,800.
    assert row.content_startup_ms == 800
    assert (row.ad_playing_ms, row.ad_preroll_playing_ms) == (10_000, 5_000)
    assert (row.ad_preroll_breaks, row.ad_midroll_breaks) == (1, 1)


def test_a_midroll_follows_content_whose_first_frame_was_lost(drive: Drive) -> None:
    row = row_of(drive, preroll(first="t:p"))
    assert (row.startup_ms, row.content_startup_ms) == (1_000, None)
    assert (row.ad_preroll_playing_ms, row.ad_preroll_breaks, row.ad_midroll_breaks) == (5_000, 1, 1)
