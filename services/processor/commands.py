"""Commands of operators: `python -m services.processor COMMAND`. Settings come from the environment, as for a slot."""

import argparse
import os
import sys
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any

import msgspec
from confluent_kafka import KafkaException

from services.processor import state_commands
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.application.application import Application
from services.processor.engine.state.rows import NewerFormat
from services.processor.runtime.kafka.reading import ReadingFailed
from services.processor.runtime.operations.corrections import (
    NothingToCorrect,
    begin_at,
    begin_topic,
    positions,
    set_clocks_back,
)
from services.processor.runtime.operations.redrive import Wanted, redrive
from services.processor.runtime.operations.state.changing import Unsafe
from services.processor.runtime.operations.state.savepoint import SavepointWrong
from services.processor.settings import ProcessorSettings
from services.processor.state_commands import time_ms
from services.rim.http.tls import client_context
from services.rim.kafka.connection import TopicsWrong, verify_topics
from services.rim.process.secrets import with_secrets
from services.rim.telemetry import logs
from shared.settings import SettingsError
from shared.topics import REDRIVEN, REJECTED

#: What a corrected application may fold now: its own failures, and what it was not given because of them.
_REASONS = ("fold_failed", "quarantined")
_ANSWER_SECONDS_MAX = 30.0


def run(arguments: Sequence[str]) -> int:
    """Runs a command. Exit codes: 0 done, 1 not, 2 wrong arguments or settings, 3 topics."""
    parser = argparse.ArgumentParser(prog="python -m services.processor")
    commands = parser.add_subparsers(dest="command", required=True)
    again = commands.add_parser(
        "redrive", help="produce records of topic `rejected` to the input of PROCESSOR_APPLICATION again, each once"
    )
    again.add_argument(
        "--reason", action="append", help=f"may be given several times; by default {' and '.join(_REASONS)}"
    )
    again.add_argument("--from", dest="from_ms", type=time_ms, help="rejected at or after this time (ISO 8601)")
    again.add_argument("--until", dest="until_ms", type=time_ms, help="rejected before this time (ISO 8601)")
    held = commands.add_parser("quarantine", help="list quarantined keys of all slots, or release them")
    held.add_argument("--release", metavar="KEY", help="fold this key's records again, from its rows as they were kept")
    held.add_argument("--release-all", action="store_true")
    begun = commands.add_parser("begin-topic", help="begin with an input that was deleted and created again")
    begun.add_argument("topic")
    begun.add_argument("--partition", type=int, help="with --offset: a partition of which the end was cut off")
    begun.add_argument("--offset", type=int, help="where its log was cut off, as the slot's last line says")
    clock = commands.add_parser("clock", help="list the clocks of all partitions, or set them back")
    clock.add_argument("--set-back", dest="clock_ms", type=time_ms, help="to this time (ISO 8601) where they are later")
    clock.add_argument("--partition", type=int, action="append", help="only this one; may be given several times")
    state_commands.add_to(commands)
    asked = parser.parse_args(arguments)
    if asked.command == "state":
        state_commands.check(parser, asked)
    if asked.command == "begin-topic" and (asked.partition is None) != (asked.offset is None):
        parser.error("--partition and --offset go together")
    try:
        environ = with_secrets(ProcessorSettings, os.environ)
        settings = ProcessorSettings.load(environ)
        application = APPLICATIONS[settings.application](environ).under(settings.application_id(settings.application))
    except SettingsError as error:
        sys.stderr.write(f"processor: {error}\n")
        return 2
    if asked.command == "quarantine":
        return _quarantine(settings, asked.release, release_all=asked.release_all)
    logs.configure("processor", settings)
    topics = [REJECTED, REDRIVEN] if asked.command == "redrive" else [application.changelog]
    try:
        verify_topics(settings, [*application.inputs, *topics])
    except TopicsWrong as error:
        sys.stderr.write(f"processor: {error}\n")
        return 3
    try:
        outcome = _outcome(asked, settings, application)
    except (ReadingFailed, NothingToCorrect, NewerFormat, Unsafe, SavepointWrong, OSError) as error:
        sys.stderr.write(f"processor: {error}\n")
        return 1
    except KafkaException as error:
        sys.stderr.write(f"processor: {error.args[0].str()}\n")
        return 1
    sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
    return 0


def _outcome(
    asked: argparse.Namespace, settings: ProcessorSettings, application: Application
) -> msgspec.Struct | list[Any]:
    if asked.command == "state":
        return state_commands.outcome(asked, settings, application)
    if asked.command == "begin-topic":
        if asked.partition is None or asked.offset is None:
            return begin_topic(settings, application, asked.topic)
        return begin_at(settings, application, asked.topic, asked.partition, asked.offset)
    if asked.command == "clock":
        if asked.clock_ms is None:
            return positions(settings, application)
        return set_clocks_back(settings, application, asked.clock_ms, asked.partition)
    wanted = Wanted(frozenset(asked.reason or _REASONS), asked.from_ms, asked.until_ms)
    return redrive(settings, application, wanted)


def _quarantine(settings: ProcessorSettings, release: str | None, *, release_all: bool) -> int:
    """Asks the slot that the settings name; it asks the others."""
    if settings.lookup_token is None:
        sys.stderr.write("processor: set PROCESSOR_LOOKUP_TOKEN, as for slots\n")
        return 2
    base = settings.lookup_url or f"http://127.0.0.1:{settings.lookup_port}"
    is_release = release_all or release is not None
    parameters = urllib.parse.urlencode({"all": "1"} if release_all else {"key": release or ""})
    request = urllib.request.Request(  # noqa: S310 - the settings allow http and https alone
        f"{base}/quarantine/release?{parameters}" if is_release else f"{base}/quarantine",
        headers={"Authorization": f"Bearer {settings.lookup_token.get_secret_value()}"},
        method="POST" if is_release else "GET",
    )
    try:
        context = client_context(settings.lookup_ca_file) if base.startswith("https") else None
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS_MAX, context=context) as answer:  # noqa: S310
            body = answer.read().decode()
    except OSError as error:
        sys.stderr.write(f"processor: {base} did not answer: {error}\n")
        return 1
    sys.stdout.write(body + "\n")
    return 0
