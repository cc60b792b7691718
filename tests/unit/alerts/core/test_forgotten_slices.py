"""An incident that has no room for all its slices forgets some: these do not join again, and the farthest one is still named."""

import pytest

from services.alerts.core import bounds
from services.alerts.core.environment import Environment, apply_rules, take_bucket
from services.alerts.core.gathering import Closed
from services.alerts.core.metrics import FIELDS, METRICS
from shared.schemas.alerts.event import AlertEvent
from shared.schemas.alerts.rule import AlertRule
from shared.schemas.live import BUCKET_MS
from tests.unit.alerts.live import T0

BY_CDN = AlertRule(
    id="cdn", version=1, name="A CDN", metric="rebuffering", condition="threshold", threshold=0.05, by="cdn"
)
REBUFFERING = METRICS["rebuffering"]
BUCKETS_A_MINUTE = 12
MANY = {f"cdn={number}": 50 + number for number in range(9)}


class Outage:
    """One customer, of whose CDNs so many of 100 viewers rebuffer."""

    def __init__(self) -> None:
        self._environment, self._at_ms = Environment(), T0

    def minutes(self, number: int, rebuffering: dict[str, int]) -> list[AlertEvent]:
        found = list[AlertEvent]()
        for _ in range(number * BUCKETS_A_MINUTE):
            counts = {}
            for name, hits in rebuffering.items():
                counts[name] = [0] * len(FIELDS)
                counts[name][REBUFFERING.of], counts[name][REBUFFERING.hits] = 100, hits
            closed = Closed(self._at_ms, counts, True)
            take_bucket(self._environment, closed, lambda _: None)
            found += apply_rules(self._environment, [BY_CDN], "acme", closed)
            self._at_ms += BUCKET_MS
        return found


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    # Room for three slices.
    monkeypatch.setattr(bounds, "REMEMBERED_BYTES_MAX", 700)
    return Outage()


def test_slices_that_go_on_are_no_update_and_one_that_joins_is(outage: Outage) -> None:
    (opened,) = outage.minutes(5, MANY)
    assert (opened.change, len(opened.slices)) == ("opened", len(MANY))
    (updated,) = outage.minutes(5, MANY | {"cdn=new": 40})
    assert updated.change == "updated"


def test_a_forgotten_slice_that_becomes_the_farthest_is_the_first_of_the_next_event(outage: Outage) -> None:
    outage.minutes(1, MANY)
    assert outage.minutes(1, MANY | {"cdn=0": 99}) == []
    (updated,) = outage.minutes(2, MANY | {"cdn=0": 99, "cdn=new": 98})
    assert [one.slice["cdn"] for one in updated.slices[:2]] == ["0", "new"]
