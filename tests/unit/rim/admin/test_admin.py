"""The admin endpoint: what it answers with and without a token."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import aiohttp
import pydantic
import pytest

from deploy.local.ports import free_port
from services.rim.admin.admin import AdminServer, Check
from shared.settings import Settings

TOKEN = pydantic.SecretStr("admin-token-of-16")


@pytest.fixture(params=[None, TOKEN])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool]]:
    """The address of an endpoint that is alive and not ready, and whether it has a token."""
    port = free_port()
    server = AdminServer(
        "127.0.0.1",
        port,
        Settings(admin_token=request.param),
        is_alive=lambda: Check(True),
        is_ready=lambda: Check(False, "draining"),
    )
    server.start()
    yield f"http://127.0.0.1:{port}", request.param is not None
    server.stop()


async def test_a_set_token_is_needed_for_more_than_yes_or_no(served: tuple[str, bool]) -> None:
    address, has_token = served
    right = {"Authorization": f"Bearer {TOKEN.get_secret_value()}"}
    async with aiohttp.ClientSession(address) as client:

        async def get(path: str, headers: dict[str, str]) -> tuple[int, str]:
            async with client.get(path, headers=headers) as answer:
                return answer.status, await answer.text()

        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer \u00e9"}):
            assert await get("/livez", headers) == (200, "ok\n")
            assert await get("/readyz", headers) == (503, "not ok\n" if has_token else "draining\n")
            assert (await get("/metrics", headers))[0] == (401 if has_token else 200)
        assert await get("/readyz", right) == (503, "draining\n")
        status, metrics = await get("/metrics", right)
        assert (status, "python_info" in metrics) == (200, True)


async def test_without_a_token_nobody_reads_more_than_yes_or_no_in_production() -> None:
    port, production = free_port(), Settings(topics_profile="production")
    server = AdminServer(
        "127.0.0.1", port, production, is_alive=lambda: Check(True), is_ready=lambda: Check(False, "draining")
    )
    server.start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
            for given in ("", "Bearer ", "Bearer None", f"Bearer {TOKEN.get_secret_value()}"):
                async with client.get("/metrics", headers={"Authorization": given}) as answer:
                    assert (answer.status, await answer.text()) == (401, "")
                async with client.get("/readyz", headers={"Authorization": given}) as answer:
                    assert (answer.status, await answer.text()) == (503, "not ok\n")
    finally:
        server.stop()


def test_a_token_that_is_no_utf8_is_a_wrong_token_and_no_error(served: tuple[str, bool]) -> None:
    address, has_token = served
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\r\nConnection: close\r\n\r\n"
        )
        assert connection.makefile("rb").readline().split()[1] == (b"401" if has_token else b"200")


#: A process in which no descriptor is left when it begins to listen, as a host has it that runs out of them.
OUT_OF_DESCRIPTORS = """
import os, resource
from deploy.local.ports import free_port
from services.rim.admin.admin import AdminServer, Check
from shared.settings import Settings
port = free_port()
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free, free))
try:
    AdminServer("127.0.0.1", port, Settings(), is_alive=lambda: Check(True), is_ready=lambda: Check(True)).start()
except OSError as error:
    print("cannot listen:", error, flush=True)
"""


@pytest.mark.thorough
def test_a_process_without_descriptors_says_so_in_its_last_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", OUT_OF_DESCRIPTORS],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.splitlines()[-1] == "cannot listen: [Errno 24] Too many open files"
