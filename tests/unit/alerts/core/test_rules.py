"""What a rule may say."""

from typing import Any

import pytest

from services.alerts.core.quiet_hours import Quiet
from services.alerts.core.rules import RuleBody, RuleWrong, applied, check
from services.alerts.core.suggested import suggested
from shared.schemas.alerts.rule import AlertRule


def body(**others: Any) -> RuleBody:
    return RuleBody(**({"customer": "acme", "name": "A rule", "metric": "rebuffering"} | others))


@pytest.mark.parametrize(
    "right",
    [
        body(),
        body(by="cdn"),
        body(filter={"cdn": "a"}, by="country"),
        body(filter={"cdn": "a", "country": "DE"}),
        body(metric="bitrate", condition="threshold", direction="below", threshold=1e6),
        body(metric="beacons", direction="below"),
        body(metric="rejected", by="release", threshold=0.01),
        body(metric="rejected", condition="threshold", threshold=0.05, filter={"collector": "c-1"}),
    ],
)
def test_a_rule_that_can_be_applied(right: RuleBody) -> None:
    check(right)
    assert isinstance(applied("id", 3, right), AlertRule)


@pytest.mark.parametrize(
    ("member", "others"),
    [
        ("name", {"name": " "}),
        ("name", {"name": "a\nb"}),
        ("threshold", {"condition": "threshold"}),
        ("threshold", {"condition": "threshold", "threshold": float("nan")}),
        ("condition", {"metric": "bitrate"}),
        ("direction", {"metric": "beacons"}),
        ("ratio", {"ratio": 1.0}),
        ("for_seconds", {"for_seconds": 7}),
        ("for_seconds", {"for_seconds": 4_000}),
        ("viewers_min", {"viewers_min": -1}),
        ("filter", {"filter": {"cdn": "a", "country": "b"}, "by": "asn"}),
        ("filter", {"filter": {"cdn": "a"}, "by": "cdn"}),
        ("filter", {"filter": {"password": "a"}}),
        ("filter", {"filter": {"cdn": ""}}),
        ("filter", {"metric": "beacons", "direction": "below", "by": "cdn"}),
        ("filter", {"by": "release"}),
        ("filter", {"metric": "rejected", "by": "cdn"}),
        ("filter", {"metric": "rejected", "by": "release", "filter": {"collector": "c-1"}}),
        ("threshold", {"threshold": float("nan")}),
        ("receivers", {"receivers": ["a", "a"]}),
        ("quiet", {"quiet": Quiet(time_zone="nowhere")}),
    ],
)
def test_a_rule_that_cannot(member: str, others: dict[str, Any]) -> None:
    with pytest.raises(RuleWrong) as error:
        check(body(**others))
    assert error.value.member == member


def test_what_is_suggested_can_be_applied() -> None:
    found = suggested("acme")
    for one in found:
        check(one)
    assert [(one.metric, one.by) for one in found] == [
        ("beacons", None),
        ("rejected", "release"),
        ("rejected", "collector"),
    ]
