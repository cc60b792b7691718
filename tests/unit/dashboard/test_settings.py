"""The dashboard's settings: what is required, and what is never printed."""

import pytest

from services.accounts.credential_queue import AT_ONCE_MAX
from services.dashboard.settings import DashboardSettings
from shared.settings import SettingsError

SECRET = "postgresql://dashboard:hunter2@db/playhead"


def test_the_database_must_be_named() -> None:
    with pytest.raises(SettingsError, match="DASHBOARD_POSTGRES_DSN"):
        DashboardSettings.load({})


def test_the_password_shows_nowhere() -> None:
    settings = DashboardSettings.load({"DASHBOARD_POSTGRES_DSN": SECRET})
    assert "hunter2" not in repr(settings)
    with pytest.raises(SettingsError) as refused:
        DashboardSettings.load({"DASHBOARD_POSTGRES_DSN": SECRET, "DASHBOARD_PORT": "many"})
    assert "hunter2" not in str(refused.value)


def test_a_flood_of_invented_credentials_leaves_a_connection() -> None:
    with pytest.raises(SettingsError, match="DASHBOARD_POSTGRES_CONNECTIONS_MAX"):
        DashboardSettings.load(
            {"DASHBOARD_POSTGRES_DSN": SECRET, "DASHBOARD_POSTGRES_CONNECTIONS_MAX": str(AT_ONCE_MAX)}
        )
