"""Marks the beacons of customers who sign their views, and rejects those that are not signed where the customer requires it."""

from typing import Final

from msgspec.structs import replace

from services.collector.intake.post import ParsedBody, Post, Rejected, Rules
from services.collector.intake.sender.signing import is_signed
from shared.codec import BEACON
from shared.schemas.beacon import Beacon

_DETAIL: Final = "the request has no valid token for this view, and the customer accepts signed views only"


def with_signatures(parsed: ParsedBody, post: Post, rules: Rules) -> ParsedBody:
    """`parsed` with `signed` set in beacons of customers who have signing keys; what they do not accept is rejected."""
    if not rules.customers.has_signing_keys:
        return parsed
    beacons = [one for one in parsed.accepted if isinstance(one, Beacon)]
    if not beacons:
        return parsed
    known: dict[tuple[str, str], bool] = {}
    rejected_places = {one.place for one in parsed.rejected}
    # An accepted beacon's place is the next that no rejected input has.
    places = (place for place in range(len(beacons) + len(parsed.rejected)) if place not in rejected_places)
    accepted: list[Beacon] = []
    rejected = list(parsed.rejected)
    for place, beacon in zip(places, beacons, strict=False):
        terms = rules.customers.terms(beacon.customer_id)
        if not terms.signing_keys:
            accepted.append(beacon)
            continue
        view = (beacon.customer_id, beacon.view_id)
        if view not in known:
            known[view] = is_signed(post.token, *view, terms, post.recv_time_ms)
        if known[view] or terms.signed_views == "mark":
            accepted.append(replace(beacon, signed=known[view]))
        else:
            rejected.append(_unsigned(beacon, place))
    return ParsedBody(accepted, rejected, parsed.by_key)


def _unsigned(beacon: Beacon, place: int) -> Rejected:
    return Rejected(
        reason="unsigned",
        detail=_DETAIL,
        value=BEACON.encode(beacon),
        customer_id=beacon.customer_id,
        view_id=beacon.view_id,
        place=place,
    )
