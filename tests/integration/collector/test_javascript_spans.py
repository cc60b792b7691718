"""OpenTelemetry's JavaScript SDK exports to the collector as it is; the Python one is in `test_otlp.py`."""

import asyncio
import os
from pathlib import Path

import pytest

from deploy.local.paths import PLAYERS
from shared.codec import SPAN
from tests.unit.collector.http.serving import Served

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).with_name("post_spans.cjs")
#: What `make setup-test` fetched, by package.


@pytest.mark.parametrize("encoding", ["json", "protobuf"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
async def test_the_javascript_sdk_exports_as_it_is(encoding: str, compression: str) -> None:
    served = Served(body_seconds_max=30.0)
    await served.start()
    try:
        exporting = await asyncio.create_subprocess_exec(
            "node",
            PROGRAM,
            f"http://127.0.0.1:{served.port}/v1/traces",
            encoding,
            compression,
            env=os.environ | {"NODE_PATH": str(PLAYERS)},
            stderr=asyncio.subprocess.PIPE,
        )
        _, output = await asyncio.wait_for(exporting.communicate(), 120)
    finally:
        await served.stop()
    assert exporting.returncode == 0, output.decode()
    spans = {span.name: span for span in (SPAN.decode(record.value) for record in served.sink.records)}
    root, child = spans["checkout"], spans["pay"]
    assert (root.customer_id, root.kind, root.service, root.parent_span_id) == ("acme", "server", "shop", None)
    assert (child.parent_span_id, child.trace_id) == (root.span_id, root.trace_id)
    assert (root.attrs, root.scope, root.resource["host.name"]) == ({"http.route": "/checkout"}, "tests", "h-1")
    assert (child.status, child.status_message, child.events[0].attrs) == ("error", "declined", {"code": 51})
    assert [link.span_id for link in child.links] == [root.span_id]
