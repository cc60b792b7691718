"""Changes of incidents as players name their slices, on a real Postgres."""

from typing import Any

import msgspec
import pytest

from services.accounts.core.customer_scope import EVERYTHING
from services.accounts.store.audit import Actor
from services.alerts.core.rules import RuleBody
from services.alerts.service import Alerting
from services.alerts.store import incidents
from tests.integration.alerts.alerting import T0, alerting, asked
from tests.unit.alerts.events import EVIDENCE, SUSPECT, event

pytestmark = pytest.mark.integration

RULE: dict[str, Any] = {
    "customer": "acme", "name": "High", "metric": "rebuffering", "condition": "threshold", "threshold": 0.05, "receivers": [],
}  # fmt: skip


def test_a_slice_with_a_zero_character_is_landed_with_a_blank(dsn: str) -> None:
    """Postgres refused the change, the service ended, and read it again at each start: nobody got a message any more."""
    title = {"video_title": "x\0y"}

    async def make(made: Alerting, actor: Actor) -> None:
        rule = await made.add_rule(EVERYTHING, msgspec.convert(RULE, RuleBody), actor)
        slices, suspects = (
            [msgspec.structs.replace(EVIDENCE, slice=title)],
            [msgspec.structs.replace(SUSPECT, slice=title)],
        )
        await made._ask(incidents.land, event=event(rule_id=rule, at_ms=T0, slices=slices, suspects=suspects))

    alerting(dsn, make)
    found = asked(dsn, "SELECT event->'slices'->0->'slice', event->'suspects'->0->'slice' FROM alerts.incidents")
    assert found == [({"video_title": "x y"},) * 2]
