"""Delivery to a view: the player's requests for media, and the size of the picture beside its source. Times in ms."""

import msgspec

from shared.requests.reading import filled, took_ms
from shared.requests.request import CANCELED, FAILED, Request
from shared.schemas.view import NUMBER_MAX


class Requests(msgspec.Struct, array_like=True, gc=False):
    """The player's requests for media."""

    count: int = 0
    failed: int = 0
    canceled: int = 0
    size_bytes: int | None = None
    time_ms: int | None = None
    ttfb_sum_ms: int | None = None
    ttfb_max_ms: int | None = None
    #: The newest values, for clients that send only what changed.
    last: list[int | None] = []


class Scale(msgspec.Struct, array_like=True, gc=False):
    """How much larger or smaller than the source the picture is shown; integrals in ratio x ms of playing."""

    sizes: dict[str, int] = {}
    upscale: float = 0.0
    downscale: float = 0.0
    is_known: bool = False
    upscale_integral: float = 0.0
    downscale_integral: float = 0.0
    time_ms: int = 0
    max_upscale: float = 0.0
    max_downscale: float = 0.0


def count_request(requests: Requests, request: Request) -> None:
    """Counts a request, and its times and bytes as far as the player sent them."""
    requests.count += 1
    sent = filled(request, requests.last)
    if request.is_delta:
        requests.last = sent
    if request.outcome == CANCELED:
        requests.canceled += 1
        return
    if request.outcome == FAILED:
        requests.failed += 1
        return
    start_ms, first_byte_ms, end_ms, size_bytes = sent
    if size_bytes is not None:
        requests.size_bytes = min((requests.size_bytes or 0) + size_bytes, NUMBER_MAX)
    if start_ms is not None and end_ms is not None:
        requests.time_ms = (requests.time_ms or 0) + took_ms(start_ms, end_ms)
    if start_ms is not None and first_byte_ms is not None:
        ttfb_ms = took_ms(start_ms, first_byte_ms)
        requests.ttfb_sum_ms = (requests.ttfb_sum_ms or 0) + ttfb_ms
        requests.ttfb_max_ms = max(requests.ttfb_max_ms or 0, ttfb_ms)


def resize(scale: Scale, sizes: dict[str, int]) -> None:
    """Takes in sizes in pixels that changed (names as in `step.Step.sizes`)."""
    scale.sizes.update(sizes)
    known = [scale.sizes.get(name, 0) for name in ("player_width", "source_width", "player_height", "source_height")]
    scale.is_known = all(known)
    if not scale.is_known:
        return
    ratio = min(known[0] / known[1], known[2] / known[3])
    scale.upscale, scale.downscale = max(0.0, ratio - 1), max(0.0, 1 - ratio)
    scale.max_upscale = max(scale.max_upscale, scale.upscale)
    scale.max_downscale = max(scale.max_downscale, scale.downscale)


def take_back(scale: Scale, elapsed_ms: int, upscale: float, downscale: float) -> None:
    """Subtracts a time that was added as playing at these sizes."""
    scale.upscale_integral -= upscale * elapsed_ms
    scale.downscale_integral -= downscale * elapsed_ms
    scale.time_ms -= elapsed_ms


def integrate(scale: Scale, elapsed_ms: int) -> None:
    """Adds a time of playing."""
    if scale.is_known:
        scale.upscale_integral += scale.upscale * elapsed_ms
        scale.downscale_integral += scale.downscale * elapsed_ms
        scale.time_ms += elapsed_ms
