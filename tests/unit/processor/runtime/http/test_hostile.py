"""Whole HTTP requests, heads included, to the lookups of a slot and to the API of users: none is answered by an error of ours."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from deploy.local.ports import free_port
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import Query
from services.processor.runtime.http.queries import HOP_PATH
from services.processor.runtime.http.routes import RequestLimits
from services.processor.runtime.http.server import LookupServer
from services.processor.runtime.questions import Looked
from services.processor.runtime.slot.releases import Released
from services.processor.runtime.slot.watches import Watches
from shared.schemas.slots import PartitionStatus, SlotStatus
from shared.settings import Settings
from tests.unit.hostile_requests import hostile_bodies, hostile_requests, status_of
from tests.unit.processor.runtime.http.stand_ins import TOKEN, Answering, Group, Here, endpoint

PATHS = {
    "video_views": [
        "/views/acme/v",
        "/views/acme/v?stale=allow",
        "/views/%ff/%00",
        "/partitions",
        "/quarantine",
        "/quarantine/release",
        "/x",
    ],
    "users": [
        "/users",
        "/users?limit=2&after=x",
        "/users/u-1",
        "/users?email=a@b.c",
        "/openapi.json",
        HOP_PATH,
        "/%zz",
    ],
}
USER = {"email": "a@example.com", "name": "A", "attributes": {"plan": "gold"}}
BODIES = [b"", b"{", b'{"email": 1e999, "name": "\xff"}', b"9" * 5_000, *hostile_bodies([USER], 40)]
#: "Come again": what needs Kafka, where there is none.
DECLARED = frozenset({503, 504})


class NoRows:
    """The committed rows of a core that has none."""

    def get(self, *_: Any) -> None:
        return None

    def items(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def page(self, *_: Any) -> list[Any]:
        return []


class Loop(SimpleNamespace):
    """Stands in for a `Worker` that has every partition and no row."""

    def __init__(self) -> None:
        super().__init__(questions=Answering(), member_id="me", queries=self)
        self.watches = Watches()

    def has(self, _partition: int) -> bool:
        return True

    def look(self, _lookup: Lookup, _subject: bytes, _partition: int) -> tuple[Looked, str]:
        return Looked(None, 0.0, 0), self.member_id

    def ask(self, query: Query, subject: bytes, _partition: int) -> tuple[bytes | None, str]:
        return query.answer(NoRows(), subject), self.member_id

    def status(self) -> SlotStatus:
        return SlotStatus("test/0", [PartitionStatus(0, "test/0", "working")])

    def quarantined(self) -> list[Any]:
        return []

    def release_quarantined(self, _key: bytes, _until: float) -> Future[Released]:
        answer: Future[Released] = Future()
        answer.set_result(Released())
        return answer

    def watch(self, query: Query, subject: bytes, partition: int, until: float) -> Any:
        return self.watches.add(partition, lambda: self.ask(query, subject, partition), until)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PATHS)
async def test_no_request_to_a_slot_is_answered_500(name: str) -> None:
    port, here = free_port(), Here()
    here.worker = Loop()
    server = LookupServer(
        APPLICATIONS[name]({}),
        endpoint(port),
        slot="test/0",
        ownership=Group(f"http://127.0.0.1:{port}", "me"),  # type: ignore[arg-type]
        replica=here,  # type: ignore[arg-type]
        settings=Settings(kafka_bootstrap="127.0.0.1:1"),
        requests=RequestLimits(seconds_max=0.1),
    )
    server.start()
    statuses = set()
    try:
        with capture_logs() as logs:
            for request in hostile_requests(150, PATHS[name], BODIES):
                # Of those without the token nothing is read; half of these have it.
                for sent in (
                    request,
                    request.replace(b"Host: x\r\n", f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n".encode(), 1),
                ):
                    status = await status_of(port, sent)
                    assert status < 500 or status in DECLARED, sent[:2_000]
                    statuses.add(status)
    finally:
        server.stop()
    assert not [line for line in logs if line["log_level"] in ("error", "critical")]
    assert {401, 404} <= statuses
