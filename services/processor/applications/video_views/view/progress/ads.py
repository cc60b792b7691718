"""Ads of a view, from the player's reports of them, in order (Mux, understand metric definitions: ad metrics). Times in ms."""

from typing import Final

import msgspec

from services.processor.applications.video_views.beacons import step

#: States in which an ad break is on.
IN_BREAK: Final = frozenset({step.AD_BREAK_BEGINS, step.AD_ATTEMPTED, step.AD_PLAYING, step.AD_PAUSED, step.AD_ENDED})


class Ads(msgspec.Struct, array_like=True, gc=False):
    """Ads as the player reported them. `state` is the newest of `step.AD_...`, 0 outside."""

    state: int = 0
    breaks: int = 0
    preroll_breaks: int = 0
    midroll_breaks: int = 0
    postroll_breaks: int = 0
    attempts: int = 0
    impressions: int = 0
    errors: int = 0
    playing_ms: int = 0
    preroll_playing_ms: int = 0
    #: Time in ad breaks before the content's first frame.
    before_content_ms: int = 0
    is_attempted: bool = False
    #: Of `playing_ms`, while the content was not playing, and while it was not being watched (paused for the ad, ended).
    apart_ms: int = 0
    unwatched_ms: int = 0


def integrate(ads: Ads, elapsed_ms: int, *, is_playing: bool, is_watched: bool, has_played: bool) -> None:
    """Adds the time since the last step; the flags describe the content meanwhile, and whether it ever played."""
    if ads.state == step.AD_PLAYING:
        ads.playing_ms += elapsed_ms
        ads.apart_ms += elapsed_ms if not is_playing else 0
        ads.unwatched_ms += elapsed_ms if not is_watched else 0
        if not has_played:
            ads.preroll_playing_ms += elapsed_ms
    if not has_played and ads.state in IN_BREAK:
        ads.before_content_ms += elapsed_ms


def show(ads: Ads, said: int, *, has_played: bool, has_ended: bool) -> bool:
    """Takes in what a step said of ads; whether an ad's first frame was shown."""
    is_impression = said == step.AD_PLAYING and ads.state not in (step.AD_PAUSED, step.AD_PLAYING)
    if said == step.AD_BREAK_BEGINS:
        ads.breaks += 1
        if has_ended:
            ads.postroll_breaks += 1
        elif not has_played:
            ads.preroll_breaks += 1
        else:
            ads.midroll_breaks += 1
    elif said == step.AD_ATTEMPTED and ads.state != step.AD_PAUSED:
        ads.attempts += 1
        ads.is_attempted = True
    elif is_impression:
        # Some clients report only the first frame.
        ads.attempts += not ads.is_attempted
        ads.impressions += 1
        ads.is_attempted = False
    elif said == step.AD_FAILED:
        ads.errors += 1
        ads.is_attempted = False
    if not (said == step.AD_ATTEMPTED and ads.state == step.AD_PAUSED):
        ads.state = 0 if said == step.AD_BREAK_ENDS else step.AD_ENDED if said == step.AD_FAILED else said
    return is_impression
