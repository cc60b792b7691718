"""Composition root of the processor: reads the settings, makes the application, runs the slot or a command.

Exit codes: 0 all committed, 1 not, 2 settings, 3 topics, ports or files, 4 replaced: another process works under the same
PROCESSOR_SLOT.
"""

import dataclasses
import logging
import os
import socket
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

import structlog

from services.processor import commands
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.application.application import Application, NotCoPartitioned
from services.processor.engine.application.failure_rules import FailureRules
from services.processor.engine.routing import Owners
from services.processor.engine.state.failures import ReleaseBroken
from services.processor.runtime.http.routes import RequestLimits
from services.processor.runtime.http.server import Endpoint, LookupServer
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.kafka.refusals import SlotFenced, WorkerFailed
from services.processor.runtime.objects.object_store import ObjectStore, ObjectsWrong
from services.processor.runtime.plan import Plan
from services.processor.runtime.slot.replica import Replica
from services.processor.runtime.standby.roles import RoleTimeouts
from services.processor.runtime.telemetry.record_traces import RecordTraces
from services.processor.settings import ProcessorSettings
from services.processor.version import code_version
from services.rim.admin.admin import AdminServer
from services.rim.http.tls import client_context, server_context
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process import garbage, malloc
from services.rim.process.compiled import Build, check
from services.rim.process.crash_points import CrashPoints
from services.rim.process.secrets import with_secrets
from services.rim.process.stopping import stop_on_signals
from services.rim.process.threads import ThreadDied, Threads
from services.rim.telemetry import certificates, disks, logs, metrics, tracing
from services.rim.telemetry.tracing import Traces
from shared.settings import SettingsError
from shared.topics import PRESENCE

#: How long the folding thread keeps a commit's thread waiting for the interpreter, at each of its steps (Python's own: 0.005).
SWITCH_SECONDS: Final = 0.001
_LOGGER: Final = "services.processor"
_UNASKED: Final = Build(False, "none was chosen")


def _application(settings: ProcessorSettings, environ: Mapping[str, str], build: Build) -> Application:
    """The application, as operators run it. Raises `SettingsError`."""
    check(settings, build)
    return dataclasses.replace(
        APPLICATIONS[settings.application](environ).under(settings.application_id(settings.application)),
        version=settings.version or code_version(),
        failure_rules=FailureRules(**settings.model_dump(include=set(FailureRules.model_fields))),
    )


def _plan(settings: ProcessorSettings, application: Application, traces: Traces | None) -> Plan:
    scheme = "https" if settings.lookup_certificate_file else "http"
    lookup_url = settings.lookup_url or f"{scheme}://{socket.gethostname()}:{settings.lookup_port}"
    return Plan(
        settings,
        application,
        lookup_url=lookup_url if settings.lookup_token is not None else None,
        objects=ObjectStore(settings.objects) if application.media is not None else None,
        record_traces=None if traces is None else RecordTraces(traces),
        crash_points=CrashPoints(settings.crash_at),
    )


def _lookups(
    settings: ProcessorSettings, plan: Plan, replica: Replica, tls: ssl.SSLContext | None
) -> LookupServer | None:
    """The lookup endpoint; None without a token."""
    if settings.lookup_token is None or plan.lookup_url is None:
        return None
    application, topic = plan.application, plan.application.inputs[0]
    ownership = Ownership(
        settings,
        group=application.id,
        topic=topic.name,
        first=Owners(plan.lookup_url, topic.partitions(settings.profile), {}),
        url_of=replica.url_of,
    )
    endpoint = Endpoint(
        settings.lookup_host,
        settings.lookup_port,
        settings.lookup_token.get_secret_value(),
        settings.lookup_credentials_known,
        tls,
        settings.lookup_ca_file,
    )
    requests = RequestLimits(seconds_max=settings.request_ms_max / 1000)
    return LookupServer(
        application,
        endpoint,
        slot=plan.slot,
        ownership=ownership,
        replica=replica,
        settings=settings,
        requests=requests,
        objects=plan.objects,
    )


def _lookup_tls(settings: ProcessorSettings) -> ssl.SSLContext | None:
    """Raises `SettingsError` where one of its files cannot be read."""
    try:
        client_context(settings.lookup_ca_file)
        if not settings.lookup_certificate_file:
            return None
        return server_context(settings.lookup_certificate_file, settings.lookup_key_file)
    except OSError as error:
        raise SettingsError(f"PROCESSOR_LOOKUP_CERTIFICATE_FILE, _KEY_FILE, _CA_FILE: {error.strerror}") from error


def _listen(admin: AdminServer, lookups: LookupServer | None) -> None:
    """Raises `OSError` where a port is taken, or no descriptor is left."""
    admin.start()
    if lookups is not None:
        lookups.start()


def run(arguments: Sequence[str], build: Build) -> int:
    """Runs the command that the arguments name, or a slot; the exit code."""
    return commands.run(arguments) if arguments else main(build)


def main(build: Build = _UNASKED) -> int:
    """Runs one slot until SIGTERM, with the build that was chosen."""
    malloc.share_arenas()
    try:
        environ = with_secrets(ProcessorSettings, os.environ)
        settings = ProcessorSettings.load(environ)
        application = _application(settings, environ, build)
    except SettingsError as error:
        sys.stderr.write(f"processor: {error}\n")
        return 2
    logs.configure("processor", settings)
    certificates.watch(*settings.certificate_files, *settings.lookup_certificate_files)
    metrics.declare("processor")
    disks.watch("state", settings.state_dir)
    log = structlog.get_logger(_LOGGER).bind(slot=settings.slot, application=application.name)
    stop = stop_on_signals()
    threads = Threads()
    threads.watch()
    try:
        verify_topics(settings, [*application.topics, PRESENCE])
        application.partitions(settings.profile)
    except (TopicsWrong, NotCoPartitioned) as error:
        return _refused(log, "topics_wrong", error, 3)
    try:
        traces = tracing.start("processor", settings)
        plan, lookup_tls = _plan(settings, application, traces), _lookup_tls(settings)
    except (ObjectsWrong, SettingsError) as error:
        return _refused(log, "settings_wrong", error, 2)
    replica = Replica(
        plan,
        RoleTimeouts(suspect=settings.suspect_ms / 1000, settle=settings.hand_back_ms / 1000),
        threads.check,
    )
    admin = AdminServer(
        settings.admin_host,
        settings.admin_port,
        settings,
        is_alive=replica.is_alive,
        is_ready=replica.is_ready,
    )
    lookups = _lookups(settings, plan, replica, lookup_tls)
    try:
        _listen(admin, lookups)
    except OSError as error:
        return _refused(log, "cannot_listen", error, 3)
    garbage.look_seldom(garbage.FOLD_OBJECTS_MAX)
    sys.setswitchinterval(SWITCH_SECONDS)
    log.info(
        "started", inputs=[topic.name for topic in application.inputs], compiled=build.is_compiled, build=build.reason
    )
    is_clean, failure = False, None
    try:
        is_clean = replica.run(stop)
    except Exception as error:  # noqa: BLE001  (any error ends the slot; the next owner goes on from the last commit)
        failure = error
    finally:
        served = [one.stop for one in (lookups, admin) if one is not None]
        _stop_each(log, *served, *([traces.close] if traces is not None else []))
    return _exit_code(log, failure, is_clean=is_clean)


def _stop_each(log: structlog.stdlib.BoundLogger, *stops: Callable[[], object]) -> None:
    """Calls each. What one raises is logged: it hides neither the others nor why the slot ended."""
    for stop in stops:
        try:
            stop()
        except Exception:
            log.exception("stop_failed")


def _refused(log: structlog.stdlib.BoundLogger, event: str, error: Exception, code: int) -> int:
    """Says why the slot does not begin; the exit code."""
    logs.only(_LOGGER)
    log.error(event, error=str(error))
    return code


def _exit_code(log: structlog.stdlib.BoundLogger, failure: Exception | None, *, is_clean: bool) -> int:
    """Says how the slot ended; the exit code."""
    # The last line is the slot's own: what the dying clients and the takeovers that still work say comes before, or not at all.
    logs.only(_LOGGER)
    if failure is None:
        log.info("stopped", clean=is_clean)
        return 0 if is_clean else 1
    if isinstance(failure, SlotFenced):
        log.error("replaced", error=str(failure))
        return 4
    is_explained = isinstance(failure, WorkerFailed | ThreadDied | ReleaseBroken)
    log.error("failed", error=str(failure), exc_info=None if is_explained else failure)
    return 1


def leave(code: int) -> NoReturn:
    """Ends the process at once: a commit that was given up may sit in the client for ever, and Python waits for its thread."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
