"""The process `notifications` of a test, with what is quick and local."""

import os
import sys
from pathlib import Path

from deploy.local.process import Child
from tests.integration.parts.installed import variables


def notifications(bootstrap: str, dsn: str, smtp_port: int, folder: Path) -> Child:
    """The process, not started; its log is a file in `folder`."""
    environ = os.environ | {
        **variables(bootstrap),
        "NOTIFICATIONS_POSTGRES_DSN": dsn,
        "NOTIFICATIONS_PRIVATE_RECEIVERS": "true",
        "NOTIFICATIONS_SMTP_HOST": "127.0.0.1",
        "NOTIFICATIONS_SMTP_PORT": str(smtp_port),
        "NOTIFICATIONS_SMTP_SECURITY": "none",
        "NOTIFICATIONS_BACKOFF_MS": "50",
        "NOTIFICATIONS_ANSWER_MS_MAX": "1000",
        "NOTIFICATIONS_ADMIN_HOST": "127.0.0.1",
        "NOTIFICATIONS_ADMIN_PORT": "0",
    }
    command = [sys.executable, "-m", "services.notifications"]
    return Child("notifications", command, log_file=folder / "notifications.log", env=environ)
