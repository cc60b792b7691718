"""The collector's server without its intake: events are produced unchanged. The difference from the collector is the cost of the
intake.

`python -m bench.collector.pass_through TOPIC`.
"""

import asyncio
import os
import sys

import orjson
import uvloop
from aiohttp import web

from services.collector.http.app import make_runner
from services.collector.http.connections import ConnectionLimits
from services.collector.http.listener import Listener
from services.collector.settings import CollectorSettings
from services.collector.sink.kafka_sink import KafkaSink, producer_config
from services.collector.sink.records import Record
from services.rim.process import garbage
from shared.partitioning import partition_of, view_key
from shared.topics import BEACONS


async def serve(settings: CollectorSettings, topic: str) -> None:
    """Serves until the process is ended."""
    records_max, kbytes_max = settings.queue_records_max, settings.queue_kbytes_max
    config = producer_config(
        settings,
        "pass-through",
        queue_records_max=records_max,
        queue_kbytes_max=kbytes_max,
        linger_ms=settings.linger_ms,
    )
    sink = KafkaSink(
        config,
        queue_records_max=records_max,
        queue_kbytes_max=kbytes_max,
        ack_seconds_max=settings.ack_seconds_max,
        on_death=sys.exit,
    )
    partitions = BEACONS.partitions(settings.profile)

    async def receive(request: web.Request) -> web.Response:
        records = []
        for event in orjson.loads(await request.read())["events"]:
            key = view_key(event["ake"], event["xid"])
            records.append(Record(topic, partition_of(key, partitions), key, orjson.dumps(event), []))
        await sink.store(records)
        return web.Response(headers={"Access-Control-Allow-Origin": "*"})

    app = web.Application()
    app.router.add_post("/", receive)
    runner = make_runner(app, settings.drain_seconds_max)
    await Listener(runner, settings.host, settings.port, ConnectionLimits()).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    garbage.look_seldom()
    uvloop.run(serve(CollectorSettings.load(os.environ), sys.argv[1]))
