"""Answers of the public API are compressed, those that are passed on too."""

import gzip
import json

import pytest

from services.rim.http.compression import BYTES_MIN
from tests.unit.dashboard.door import METRICS_TOKEN
from tests.unit.dashboard.test_unknown_paths import client_of
from tests.unit.query.parts.desk import headers_of


@pytest.mark.thorough
@pytest.mark.parametrize("service", ["query", "dashboard"])
@pytest.mark.parametrize("path", ["/v1/metrics", "/v1/openapi.json"])
async def test_a_long_answer_is_compressed_on_its_way(service: str, path: str) -> None:
    headers = headers_of(METRICS_TOKEN) | {"Accept-Encoding": "gzip"}
    async with client_of(service) as client, client.get(path, headers=headers) as answer:
        assert (answer.status, answer.headers["Content-Encoding"]) == (200, "gzip")
        content = await answer.read()
    assert len(content) > BYTES_MIN
    plain = headers_of(METRICS_TOKEN) | {"Accept-Encoding": "identity"}
    async with client_of(service) as client, client.get(path, headers=plain) as answer:
        assert "Content-Encoding" not in answer.headers
        assert await answer.json() == json.loads(_plain(content))


def _plain(content: bytes) -> bytes:
    """As the client has it: most unpack an answer by themselves."""
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
