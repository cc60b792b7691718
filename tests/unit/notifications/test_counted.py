"""What is counted of attempts."""

import pytest
from prometheus_client import REGISTRY

from services.alerts.targets import KINDS
from services.notifications.sending import Sending
from services.notifications.settings import NotificationsSettings
from services.rim.telemetry.metrics import counter
from shared.metrics import NOTIFICATIONS_MESSAGES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outcome", ["delivered", "again", "dead"])
async def test_attempts_are_counted_from_0_before_the_first(kind: str, outcome: str) -> None:
    # Other tests of this process have counted.
    counter(NOTIFICATIONS_MESSAGES).clear()
    settings = NotificationsSettings.model_validate({"postgres_dsn": "postgresql://x/y"})
    Sending(settings, None, None)  # type: ignore[arg-type]
    labels = {"kind": kind, "outcome": outcome}
    assert REGISTRY.get_sample_value("playhead_notifications_messages_total", labels) == 0
