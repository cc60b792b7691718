"""What tests of deletions share: what clients send, exports that are kept, and searches of every file and table."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final
from uuid import uuid4

import duckdb
import msgspec
import psycopg
from confluent_kafka import Producer
from psycopg import sql

from deploy.local.broker import Broker
from deploy.local.process import wait_until
from services.query.core.resources.exports.exports import Job
from services.query.deleting import Deleting
from services.query.rim.export_files import ExportFiles
from services.rim.database import pool
from shared import codec, topics
from shared.chunks import Chunk, headers_of
from shared.codec import BEACON
from shared.partitioning import partition_of, recording_key, view_key
from shared.schemas.recording import RecordingRow
from tests.integration.parts.installed import PARTITIONS
from tests.unit.processor.applications.video_views.beacons import mux, watch

_LOOK_SECONDS: Final = 0.5


class Feed:
    """What clients sent, as the collector produces it."""

    def __init__(self, broker: Broker) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})

    def view(self, view_id: str, viewer: str, words: str, *, is_whole: bool, customer: str = "acme") -> None:
        """A view of a viewer; one that is not whole stays open."""
        key = view_key(customer, view_id)
        for one in watch() if is_whole else watch()[:2]:
            named = (
                {"mux_viewer_id": viewer, "page_url": f"https://example.com/{words}"}
                if one.event == "viewstart"
                else {}
            )
            beacon = mux(one.seq or 0, one.event, one.seq or 0, view_id=view_id, **one.attrs | named)
            self._send(topics.BEACONS, key, BEACON.encode(msgspec.structs.replace(beacon, customer_id=customer)))

    def recording(self, session: str, content: bytes) -> None:
        """A payload of a session."""
        sha256 = hashlib.sha256(content).digest()
        chunk = Chunk(session, 0, uuid4().hex, 0, 1, len(content), sha256)
        self._send(topics.RECORDINGS, recording_key("acme", session), content, headers_of(chunk))

    def rejected(self, viewer: str) -> None:
        """What no service understood."""
        for value in (b'{"viewer": "%s"', b"\x0a\x10viewer=%s\xff"):
            self._send(topics.REJECTED, None, value % viewer.encode(), [("reason", b"undecodable")])

    def _send(self, topic: topics.Topic, key: bytes | None, value: bytes, headers=()) -> None:  # type: ignore[no-untyped-def]
        number = partition_of(key or b"", PARTITIONS)
        self._producer.produce(topic.name, value, key, number, headers=list(headers))
        assert self._producer.flush(60) == 0


def recorded(session: str, customer: str = "acme", at_ms: int = 1) -> bytes:
    """A payload of a recorded session, as topic `recording_index` has it."""
    return codec.RECORDING.encode(
        RecordingRow(
            schema_version=1,
            customer_id=customer,
            session_id=session,
            sequence=0,
            sequence_last=0,
            state="stored",
            revision=1,
            at_ms=at_ms,
            object=f"{customer}/{session}/000000-{uuid4().hex}",
        )
    )


class Kept:
    """Exports in a folder, as the service query has them."""

    def __init__(self, folder: Path) -> None:
        self.files = ExportFiles(folder)

    def make(self, name: str, customers: list[str], text: str) -> None:
        job = Job(name * 32, "o", "a", "views", "csv", {"viewer": text}, customers, [], 1, 2**60, "done", 1, len(text))
        self.files.write(job)
        self.files.result(job).write_text(text)

    async def all(self) -> list[Job]:
        return self.files.all()

    async def delete(self, job: Job) -> None:
        self.files.delete(job)


def looked_until(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Waits for what is looked for in files or topics: a look costs more CPU time than what is waited for."""
    wait_until(condition, seconds, what, every=_LOOK_SECONDS)


def holding(folder: Path, *wanted: str) -> set[str]:
    """The parts of an installation in whose files these texts are; of Parquet files in their rows too."""
    found = set()
    for path in folder.rglob("*"):
        # Manifests of local stores have bounds of keys (docs/privacy.md, "Not reached").
        if not path.is_file() or path.suffix == ".log" or path.name.startswith("MANIFEST-"):
            continue
        try:
            content = path.read_bytes()
            if path.suffix == ".parquet" and not path.name.startswith("."):
                content += rows_of(path).encode()
        except FileNotFoundError:
            continue
        if any(one.encode() in content for one in wanted):
            found.add(path.relative_to(folder).parts[0])
    return found


def rows_of(path: Path) -> str:
    """The rows of a Parquet file, as text. Raises `FileNotFoundError`."""
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, _changed_ns: int) -> str:
    with duckdb.connect() as connection:
        return repr(connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall())


def tables_holding(dsn: str, *wanted: str) -> set[str]:
    """The tables of a database in whose rows these texts are."""
    found = set()
    with psycopg.connect(dsn) as connection:
        listed = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for schema, table in listed:
            statement = sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(schema, table))
            text = "\n".join(row[0] for row in connection.execute(statement))
            if any(one in text for one in wanted):
                found.add(f"{schema}.{table}")
    return found


async def delete_exports(dsn: str, kept: Kept) -> None:
    """The last step of requests, as the service query does it."""
    postgres = pool.Postgres(dsn, service="test", connections_max=1, seconds_max=20, writes=True)
    await postgres.open()
    try:
        await Deleting(postgres, kept).look()
    finally:
        await postgres.close()
