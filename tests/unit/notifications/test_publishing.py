"""Rules are given to the processor, those of one environment however another's are."""

import asyncio
from collections.abc import Collection
from typing import Any, cast

import pytest

from services.alerts.store.rules import RulesUnread
from services.notifications import publishing
from services.notifications.publishing import Publishing
from services.notifications.settings import NotificationsSettings
from services.rim.database.pool import Postgres
from shared.schemas.alerts.rule import SCHEMA_VERSION, AlertRules


async def test_rules_that_cannot_be_read_keep_no_others_from_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of one environment ended the service, at each of its starts."""
    published = asyncio.Event()
    other = AlertRules(schema_version=SCHEMA_VERSION, customer_id="globex", version=7, rules=[])

    async def lock_unpublished(_: Any, unread: Collection[tuple[str, int]]) -> AlertRules | None:
        if ("acme", 3) not in unread:
            raise RulesUnread("acme", 3)
        return None if published.is_set() else other

    async def set_published(_: Any, rules: AlertRules) -> None:
        assert rules is other
        published.set()

    class Stand:
        async def ask(self, work: Any) -> Any:
            return await work(None)

    monkeypatch.setattr(publishing, "Producer", lambda _: None)
    monkeypatch.setattr(publishing.rules, "lock_unpublished", lock_unpublished)
    monkeypatch.setattr(publishing.rules, "set_published", set_published)
    monkeypatch.setattr(Publishing, "_produce", lambda *_: None)
    one = Publishing(NotificationsSettings(postgres_dsn="postgresql://x/y"), cast(Postgres, Stand()))
    loop = asyncio.create_task(one.run())
    try:
        await asyncio.wait({loop, asyncio.create_task(published.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert published.is_set()
    finally:
        loop.cancel()
