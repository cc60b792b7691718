"""Attempts outlast a receiver that is away for an hour, and end."""

from services.notifications.sending import wait_bound_seconds
from services.notifications.settings import NotificationsSettings


def test_attempts_go_on_for_more_than_an_hour_and_no_longer_than_half_a_day() -> None:
    settings = NotificationsSettings.model_validate({"postgres_dsn": "postgresql://x/y"})
    bounds = [wait_bound_seconds(settings, failed) for failed in range(1, settings.attempts_max)]
    assert bounds == sorted(bounds)
    # The first attempts come soon: most failures are short.
    assert sum(bounds[:5]) <= 60
    # A wait is between half of its bound and all of it.
    assert sum(bounds) / 2 > 3_600
    assert sum(bounds) < 12 * 3_600
