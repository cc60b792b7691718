"""Starts the collector: settings, topics, sink, application, listener. Stops it without losing a record.

Exit codes: 0 done, 1 records were left unstored, 2 wrong settings, 3 topics or ports not available, 4 the producer, or what drains
the spool, died, 5 the spool could not be drained. 6: the task that reloads the customers or reports on them died.
"""

import asyncio
import os
import secrets
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog
import uvloop
from aiohttp import web

from services.collector.admission.rates import LIMITED
from services.collector.customers.file import CustomersFile, CustomersSource, RulesNow
from services.collector.customers.table import CustomersTable, TableAway
from services.collector.customers.upkeep import Upkeep
from services.collector.customers.usage import Usage
from services.collector.customers.usage_reports import UsageReports
from services.collector.http.app import make_app, make_runner
from services.collector.http.connections import ConnectionLimits, room_for
from services.collector.http.finishing import Drain
from services.collector.http.listener import Listener
from services.collector.http.places import Places
from services.collector.http.reception import Reception
from services.collector.http.recordings.routes import RecordingRoutes
from services.collector.http.recordings.uploads import Uploads
from services.collector.http.routes import Routes
from services.collector.http.senders import Clients
from services.collector.intake.sender.customers import CustomersWrong
from services.collector.received.counting import Counts
from services.collector.received.reporting import ReceivedReports
from services.collector.settings import CollectorSettings
from services.collector.sink.kafka_sink import KafkaSink, producer_config
from services.collector.sink.sink import Sink
from services.collector.sink.spool_files import Spool
from services.collector.sink.spooled_sink import SpooledSink
from services.rim.admin.admin import AdminServer
from services.rim.database.postgres import certificate_files
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process import garbage
from services.rim.process.compiled import Build, check
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.telemetry import certificates, disks, logs, metrics, tracing
from shared.metrics import COLLECTOR_QUEUE_RECORDS
from shared.settings import SettingsError
from shared.topics import API_CALLS, BEACONS, RECEIVED, RECORDINGS, REJECTED, SPANS

log = structlog.get_logger(__name__)

#: How long the thread that parses keeps the event loop waiting for the interpreter, after each of its system calls (Python's own:
#: 0.005). A request makes several.
SWITCH_SECONDS: Final = 0.0001

_UNASKED: Final = Build(False, "none was chosen")

EXIT_UNSTORED = 1
EXIT_SETTINGS = 2
EXIT_BOOT = 3
EXIT_DEAD = 4
EXIT_SPOOL = 5
EXIT_CUSTOMERS = 6


def main(build: Build = _UNASKED) -> int:
    """Runs the collector until a signal stops it; returns the exit code. `build` is that of the modules which it has imported."""
    try:
        settings = CollectorSettings.load(with_secrets(CollectorSettings, os.environ))
        check(settings, build)
    except SettingsError as error:
        sys.stderr.write(f"collector: {error}\n")
        return EXIT_SETTINGS
    logs.configure("collector", settings)
    certificates.watch(*settings.certificate_files, read_again=certificate_files(settings.customers_dsn))
    metrics.declare("collector")
    stop = stop_on_signals()
    try:
        verify_topics(settings, [BEACONS, SPANS, API_CALLS, RECORDINGS, RECEIVED, REJECTED])
    except TopicsWrong as error:
        log.error("topics_wrong", problem=str(error))
        return EXIT_BOOT
    garbage.look_seldom()
    sys.setswitchinterval(SWITCH_SECONDS)
    return uvloop.run(serve(settings, stop, build))


async def serve(settings: CollectorSettings, stop: threading.Event, build: Build = _UNASKED) -> int:
    """Serves until `stop` is set, or the producer dies; the exit code."""
    collector_id = settings.id or f"{socket.gethostname()}-{os.getpid()}"

    def on_death(why: str) -> None:
        log.error("producer_died", why=why)
        stop.set()

    try:
        source = await asyncio.to_thread(_customers, settings)
        clients = Clients(settings.proxies, Places(settings.places))
        spool = Spool(Path(settings.spool_dir)) if settings.spool_dir else None
        traces = tracing.start("collector", settings)
    except (CustomersWrong, TableAway, ValueError, OSError) as error:
        log.error("cannot_start", problem=str(error))
        return EXIT_BOOT
    sink = _kafka_sink(settings, collector_id, on_death)
    recordings_sink = _recordings_sink(settings, collector_id, on_death)
    mux_sink = _mux_sink(settings, sink, spool, stop)
    metrics.gauge(COLLECTOR_QUEUE_RECORDS).set_function(sink.records_waiting)
    drain = Drain()
    received = ReceivedReports(Counts(collector_id, secrets.randbits(48)), sink, settings.profile, _now_ms)
    reception, reports = _reception(settings, source, clients, traces, received.counts)
    upkeep = Upkeep(source, reports, stop)
    await upkeep.begin()
    uploads = Uploads(recordings_sink, settings.profile, settings.upload_limits(), new_id=lambda: uuid.uuid4().hex)
    routes = Routes(reception, sink, mux_sink), RecordingRoutes(reception, uploads)
    runner = make_runner(make_app(*routes, drain), settings.drain_seconds_max)
    admin = AdminServer(
        settings.admin_host,
        settings.admin_port,
        settings,
        is_alive=mux_sink.health,
        is_ready=lambda: drain.readiness(mux_sink),
    )
    listener = await _listening(settings, runner, admin)
    if listener is None:
        await mux_sink.close(0)
        await recordings_sink.close(0)
        return EXIT_BOOT
    upkeep.start(
        customers_seconds=settings.customers_seconds, usage_seconds=settings.usage_seconds, more=[received.watch()]
    )
    log.info(
        "ready",
        host=settings.host,
        port=settings.port,
        admin_port=settings.admin_port,
        collector=collector_id,
        compiled=build.is_compiled,
        build=build.reason,
    )
    await asyncio.to_thread(stop.wait)
    code = await _drain(listener, (mux_sink, recordings_sink), drain, settings, received)
    if not await upkeep.end():
        log.error("stopped_without_customers")
        code = code or EXIT_CUSTOMERS
    if traces is not None:
        await asyncio.to_thread(traces.close)
    admin.stop()
    return code


def _customers(settings: CollectorSettings) -> CustomersSource | None:
    if settings.customers_dsn is not None:
        return CustomersTable(settings.customers_dsn.get_secret_value())
    return CustomersFile(Path(settings.customers_file)) if settings.customers_file else None


def _reception(
    settings: CollectorSettings,
    source: CustomersSource | None,
    clients: Clients,
    traces: tracing.Traces | None,
    counts: Counts,
) -> tuple[Reception, UsageReports | None]:
    """What takes requests in, and what reports the usage that it counts: nothing where customers are in no database."""
    collector_id = counts.collector_id
    rules = settings.rules(collector_id, source.customers if source else settings.listed_customers)
    limits = settings.limits()
    # What nobody reports is not counted: it would grow without end.
    usage = None if settings.customers_dsn is None else Usage()
    reception = Reception(
        RulesNow(rules, source), clients, settings.profile, limits, _now_ms, traces=traces, usage=usage, received=counts
    )
    if settings.customers_dsn is None or usage is None:
        return reception, None
    defaults = {name: value for name in LIMITED if (value := getattr(limits.customer_rates, name)) is not None}
    process = f"{collector_id}/{uuid.uuid4().hex[:12]}"
    dsn = settings.customers_dsn.get_secret_value()
    return reception, UsageReports(dsn, process, usage, defaults, reception.set_stored)


def _kafka_sink(settings: CollectorSettings, collector_id: str, on_death: Callable[[str], None]) -> KafkaSink:
    return KafkaSink(
        producer_config(
            settings,
            f"collector-{collector_id}",
            queue_records_max=settings.queue_records_max,
            queue_kbytes_max=settings.queue_kbytes_max,
            linger_ms=settings.linger_ms,
        ),
        queue_records_max=settings.queue_records_max,
        queue_kbytes_max=settings.queue_kbytes_max,
        ack_seconds_max=settings.ack_seconds_max,
        on_death=on_death,
    )


def _recordings_sink(settings: CollectorSettings, collector_id: str, on_death: Callable[[str], None]) -> KafkaSink:
    """A separate producer: no beacon waits behind megabytes. Data that clients compress is not compressed again."""
    # Uploads themselves bound what is under way; twice that is for what they have given up and Kafka has not.
    queue_kbytes_max = 2 * settings.recording_queue_bytes_max // 1024
    queue_records_max = settings.queue_records_max
    return KafkaSink(
        producer_config(
            settings,
            f"collector-{collector_id}-recordings",
            queue_records_max=queue_records_max,
            queue_kbytes_max=queue_kbytes_max,
            linger_ms=0,
        )
        | {"compression.codec": "none"},
        queue_records_max=queue_records_max,
        queue_kbytes_max=queue_kbytes_max,
        ack_seconds_max=settings.recording_ack_seconds_max,
        on_death=on_death,
    )


def _mux_sink(settings: CollectorSettings, sink: KafkaSink, spool: Spool | None, stop: threading.Event) -> Sink:
    """Where beacons of Mux go: onto a disk first, where a folder is named."""
    if spool is None:
        return sink
    disks.watch("spool", Path(settings.spool_dir))
    return SpooledSink(
        sink,
        spool,
        bytes_max=settings.spool_bytes_max,
        seconds_max=settings.spool_seconds_max,
        now_ms=_now_ms,
        on_death=stop.set,
    )


async def _listening(settings: CollectorSettings, runner: web.AppRunner, admin: AdminServer) -> Listener | None:
    """A listener that takes connections; None where that cannot be, which the log says."""
    listener: Listener | None = None
    try:
        listener = Listener(
            runner,
            settings.host,
            settings.port,
            ConnectionLimits(room_for(settings.connections_max), settings.head_seconds_max),
        )
        await listener.start()
        # Last: `/readyz` answers 200 only once the process listens.
        admin.start()
    except OSError as error:
        log.error("cannot_listen", problem=str(error))
        admin.stop()
        if listener is not None:
            await listener.close()
        return None
    return listener


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def _drain(
    listener: Listener, sinks: tuple[Sink, Sink], drain: Drain, settings: CollectorSettings, received: ReceivedReports
) -> int:
    """Stops in an order that loses no record; returns the exit code.

    1. `/readyz` answers 503 and responses close their connections, while connections are still accepted: a load balancer needs
       time to notice, and new clients are served meanwhile.
    2. No new connections; requests of accepted connections are finished and answered.
    3. What was received since the last report is reported.
    4. The producers are flushed. Records that they still hold then were answered 503 or not at all.
    """
    sink, recordings = sinks
    drain.begun = True
    dead = next((health.why for health in (sink.health(), recordings.health()) if not health.ok), None)
    if not dead:
        await asyncio.sleep(settings.drain_notice_seconds)
    await listener.close()
    if not dead:
        await received.finish()
    left = await sink.close(0 if dead else settings.drain_seconds_max)
    left += await recordings.close(0 if dead else settings.drain_seconds_max)
    if dead:
        log.error("stopped_dead", why=dead, records_unstored=left)
        return EXIT_DEAD
    if isinstance(sink, SpooledSink) and sink.bytes_held():
        # They are safe, but only on this disk: a collector must be started on it again.
        log.error("stopped_with_a_spool", spool_bytes=sink.bytes_held(), records_unstored=left)
        return EXIT_SPOOL
    if left:
        log.error("stopped_with_records_unstored", records_unstored=left)
        return EXIT_UNSTORED
    log.info("stopped")
    return 0
