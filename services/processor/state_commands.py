"""Commands on state: `python -m services.processor state COMMAND`; docs/state.md has them."""

import argparse
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import TopicPartition

from services.processor.engine.application.application import Application
from services.processor.runtime.operations.state import keys, whole
from services.processor.settings import ProcessorSettings
from services.rim.process.crash_points import CrashPoints


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the commands to those of the processor."""
    state = commands.add_parser(
        "state", help="savepoints, reset, other offsets, the rows of one key; see docs/state.md"
    )
    acts = state.add_subparsers(dest="act", required=True)
    export = _act(acts, "export", "write the state at the last commit to a new folder")
    export.add_argument("--to", type=Path, required=True)
    taken = _act(acts, "import", "make a savepoint the state of an application that has none")
    taken.add_argument("--from", dest="folder", type=Path, required=True)
    reset = _act(acts, "reset", "delete every row")
    for act in (taken, reset):
        act.add_argument(
            "--inputs",
            choices=("keep", "beginning", "end"),
            required=True,
            help="where inputs are read next: at the offsets of the state, at their first record, at their present end",
        )
    for name, what in (("skip", "pass records of an input over"), ("replay", "fold records of an input again")):
        moved = _act(acts, name, what)
        moved.add_argument("topic")
        moved.add_argument("--partition", type=int, action="append", help="only this one; may be given several times")
        to = moved.add_mutually_exclusive_group(required=True)
        to.add_argument("--to-offset", type=int)
        to.add_argument("--to-time", dest="to_ms", type=time_ms, help="ISO 8601, the time of the broker")
        edge = "end" if name == "skip" else "beginning"
        to.add_argument(f"--to-{edge}", dest="to_edge", action="store_true")
    for name, what in (("read", "the rows of one key, as JSON"), ("delete", "delete the rows of one key")):
        act = acts.add_parser(name, help=what) if name == "read" else _act(acts, name, what)
        act.add_argument("key", help="the key of the application's input, as acme:view-1")


def _act(acts: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, what: str) -> argparse.ArgumentParser:
    parser = acts.add_parser(name, help=what)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    return parser


def check(parser: argparse.ArgumentParser, asked: argparse.Namespace) -> None:
    """Ends with code 2 where arguments do not go together."""
    if asked.act in {"skip", "replay"} and asked.to_offset is not None and len(asked.partition or ()) != 1:
        parser.error("--to-offset is of one --partition")


def outcome(
    asked: argparse.Namespace, settings: ProcessorSettings, application: Application
) -> msgspec.Struct | list[Any]:
    """Does what is asked. Raises `Unsafe`, `SavepointWrong`, `ReadingFailed`, `NewerFormat`, `KafkaException`."""
    points = CrashPoints(settings.crash_at)
    if asked.act == "read":
        return keys.read(settings, application, asked.key.encode())
    if asked.act == "delete":
        return keys.delete(settings, application, asked.key.encode(), is_dry=asked.dry_run, points=points)
    if asked.act == "export":
        return whole.export(settings, application, asked.to, is_dry=asked.dry_run, points=points)
    if asked.act == "import":
        return whole.import_(settings, application, asked.folder, asked.inputs, is_dry=asked.dry_run, points=points)
    if asked.act == "reset":
        return whole.reset(settings, application, asked.inputs, is_dry=asked.dry_run, points=points)
    return whole.move(
        settings,
        application,
        asked.topic,
        asked.partition,
        _offset_of(asked, settings, application),
        is_forward=asked.act == "skip",
        is_dry=asked.dry_run,
        points=points,
    )


def _offset_of(
    asked: argparse.Namespace, settings: ProcessorSettings, application: Application
) -> Callable[[int, int, int], int]:
    def offset_of(number: int, low: int, end: int) -> int:
        if asked.to_offset is not None:
            return int(asked.to_offset)
        if asked.to_ms is not None:
            found = whole.offset_at(settings, application, TopicPartition(asked.topic, number, asked.to_ms))
            return end if found is None else found
        return end if asked.act == "skip" else low

    return offset_of


def time_ms(text: str) -> int:
    """Ms since 1970 of a time in ISO 8601 with a time zone."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} names no time zone, as in 2026-11-23T04:00:00Z")
    return round(at.timestamp() * 1000)
