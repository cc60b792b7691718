"""Lookups over TLS: between slots, and for services, each of which checks the name of whom it asks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local.ports import free_port
from services.processor.engine.routing import Owner, Owners
from services.processor.runtime.http.routes import RequestLimits
from services.processor.runtime.http.server import LookupServer
from services.rim.http.lookups import Lookups, LookupsAway
from services.rim.http.tls import server_context
from shared.settings import Settings
from tests.integration.parts.secured import Authority
from tests.unit.processor.runtime.http.stand_ins import PARTITIONS, TOKEN, Group, Here, endpoint
from tests.unit.processor.runtime.http.test_lookups import counting, worker

Start = Callable[..., tuple[str, Group, Here]]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def start(authority: Authority) -> Iterator[Start]:
    """Starts a slot's lookups that trust the authority in `ca_file`."""
    servers = []

    def begin(slot: str, ca_file: Path = authority.ca_file) -> tuple[str, Group, Here]:
        port = free_port()
        url = f"https://127.0.0.1:{port}"
        group, here = Group(url, "me"), Here()
        tls = server_context(str(authority.server_file), str(authority.server_file))
        parts: dict[str, Any] = {"ownership": group, "replica": here}
        server = LookupServer(
            counting(),
            endpoint(port, tls=tls, ca_file=str(ca_file)),
            slot=slot,
            settings=Settings(),
            requests=RequestLimits(),
            **parts,
        )
        server.start()
        servers.append(server)
        return url, group, here

    yield begin
    for server in servers:
        server.stop()


async def asked(url: str, ca_file: str) -> bytes | None:
    lookups = Lookups(url, TOKEN, seconds_max=10, ca_file=ca_file)
    await lookups.open()
    try:
        return await lookups.get("/counts/there")
    finally:
        await lookups.close()


async def test_a_question_is_passed_on_over_tls_to_whom_the_authority_vouches_for(
    start: Start, authority: Authority
) -> None:
    url, group, _ = start("test/0")
    other, _, there = start("test/1")
    there.worker = worker({b"there": b'{"n":1}'})
    group.owners = Owners(url, PARTITIONS, dict.fromkeys(range(PARTITIONS), Owner("test/1", other)))
    found = await asked(url, str(authority.ca_file))
    assert found is not None
    assert b'"found":{"n":1}' in found
    # The system's authorities know nothing of it.
    with pytest.raises(LookupsAway):
        await asked(url, "")


async def test_a_slot_passes_nothing_on_to_whom_it_cannot_check(
    start: Start, authority: Authority, tmp_path: Path
) -> None:
    url, group, _ = start("test/0", Authority(tmp_path).ca_file)
    other, _, there = start("test/1")
    there.worker = worker({b"there": b'{"n":1}'})
    group.owners = Owners(url, PARTITIONS, dict.fromkeys(range(PARTITIONS), Owner("test/1", other)))
    with pytest.raises(LookupsAway, match="503"):
        await asked(url, str(authority.ca_file))
