"""A viewer is deleted on real parts: broker, slots, finalizer, Postgres, objects, exports. Then every byte on disk is searched."""

import asyncio
import hashlib
import random
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import duckdb
import psycopg
import pytest
from confluent_kafka import Producer
from psycopg import sql

from deploy.local.broker import Broker
from deploy.local.postgres import Postgres
from services.accounts.core.deletions import Step
from services.query.core.resources.exports import Job
from services.query.deleting import Deleting
from services.query.rim.export_files import ExportFiles
from services.rim.database import pool
from shared import topics
from shared.chunks import Chunk, headers_of
from shared.codec import BEACON
from shared.partitioning import partition_of, recording_key, view_key
from shared.topics import PROFILES
from tests.integration.brokers import topics_of
from tests.integration.feed import committed
from tests.integration.finalizing import Installation, wait_for_exit
from tests.integration.slots import Slot, wait_until
from tests.unit.processor.applications.video_views.beacons import mux, watch

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

#: Found nowhere else, and nothing that compresses: as an id, and in what the viewer sent.
VIEWER, MARKER, OTHER = (random.Random(name).randbytes(16).hex() for name in ("viewer", "marker", "other"))


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    return {one.name: one for one in (*topics_of("video_views"), *topics_of("recordings"))}.values()


class Feed:
    """What clients sent, as the collector produces it."""

    def __init__(self, broker: Broker) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})

    def view(self, view_id: str, viewer: str, words: str, *, is_whole: bool) -> None:
        """A view of a viewer; one that is not whole stays open."""
        key = view_key("acme", view_id)
        for one in watch() if is_whole else watch()[:2]:
            named = (
                {"mux_viewer_id": viewer, "page_url": f"https://example.com/{words}"}
                if one.event == "viewstart"
                else {}
            )
            beacon = mux(one.seq or 0, one.event, one.seq or 0, view_id=view_id, **one.attrs | named)
            self._send(topics.BEACONS, key, BEACON.encode(beacon))

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
        number = partition_of(key or b"", topic.partitions(PROFILES["laptop"]))
        self._producer.produce(topic.name, value, key, number, headers=list(headers))
        assert self._producer.flush(60) == 0


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


@contextmanager
def slots(broker: Broker, folder: Path) -> Iterator[None]:
    """A slot of views and one of recordings."""
    common = {
        "PROCESSOR_REWRITE_INTERVAL_MS": "100",
        "PLAYHEAD_TOPICS_PROFILE": "laptop",
        "VIDEO_VIEWS_FINISH_CLEAN_MS": "0",
    }
    of_views = Slot(broker.bootstrap, folder, 0, **common)
    of_recordings = Slot(
        broker.bootstrap,
        folder,
        1,
        **common,
        PROCESSOR_APPLICATION="recordings",
        PROCESSOR_OBJECTS=str(folder / "objects"),
    )
    started = (of_views, of_recordings)
    try:
        for one in started:
            one.start()
        for one in started:
            wait_until(one.is_ready, "the slot is ready", 120)
        yield
    finally:
        for one in started:
            one.end()


def holding(folder: Path, *wanted: str) -> set[str]:
    """The parts of an installation in whose files these texts are; of Parquet files in their rows too."""
    found = set()
    for path in folder.rglob("*"):
        if not path.is_file() or path.suffix == ".log":
            continue
        try:
            content = path.read_bytes()
            if path.suffix == ".parquet" and not path.name.startswith("."):
                with duckdb.connect() as connection:
                    rows = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
                content += repr(rows).encode()
        except FileNotFoundError:
            continue
        if any(one.encode() in content for one in wanted):
            found.add(path.relative_to(folder).parts[0])
    return found


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


def test_nothing_of_a_viewer_is_left_on_any_disk_through_a_kill(
    broker: Broker, postgres: Postgres, tmp_path: Path
) -> None:
    dsn = postgres.create_database(f"deletions_{uuid4().hex}")
    feed, kept = Feed(broker), Kept(tmp_path / "exports")
    installation = Installation(tmp_path, broker.bootstrap, dsn)
    options = {"applications": "recordings", "objects": str(tmp_path / "objects"), "deletion_settle_seconds": "0"}
    with slots(broker, tmp_path):
        for viewer, words, name in ((VIEWER, MARKER, "hers"), (OTHER, OTHER, "another")):
            feed.view(f"{name}-done", viewer, words, is_whole=True)
            feed.view(f"{name}-open", viewer, words, is_whole=False)
            feed.recording(f"session-{name}", words.encode())
            feed.rejected(viewer)
        kept.make("a", ["acme"], f"viewer_id\r\n{VIEWER}\r\n")
        kept.make("b", ["elsewhere"], f"viewer_id\r\n{OTHER}\r\n")
        wait_until(lambda: len(committed(broker.bootstrap, topics.VIEWS)) >= 2, "the whole views are finished", 180)
        wait_until(lambda: holding(tmp_path, MARKER) >= {"objects", "state-0"}, "all is stored", 120)
        assert installation.run_once(**options) == 0
        everywhere = {"warehouse", "objects", "state-0", "exports"}
        assert holding(tmp_path, VIEWER, MARKER) == holding(tmp_path, OTHER) == everywhere
        assert tables_holding(dsn, VIEWER, MARKER) == {"serving.views"}

        command = f"forget --customer acme --viewer {VIEWER} --session session-hers"
        # The process is killed between the work of its second step and the note of it.
        with installation.running(command, crash_at="deletion_step:2", **options) as child:
            wait_for_exit(child)
            assert child.exit_code == -signal.SIGKILL
        with installation.running(command, **options) as child:
            wait_for_exit(child)
            assert child.exit_code == 0, (tmp_path / "finalizer.log").read_text()[-3000:]
        asyncio.run(_delete_exports(dsn, kept))

        assert "deletion_steps" not in tables_holding(dsn, VIEWER, MARKER)
        assert tables_holding(dsn, VIEWER, MARKER) == set()
        wait_until(lambda: not holding(tmp_path, VIEWER, MARKER), "files of open state are written again", 120)
        assert holding(tmp_path, OTHER) == everywhere
        assert tables_holding(dsn, OTHER) == {"serving.views"}
    with psycopg.connect(dsn) as connection:
        state, viewer = connection.execute("SELECT state, viewer FROM accounts.deletions").fetchone() or ("", "")
        found = dict(connection.execute("SELECT step, found FROM accounts.deletion_steps").fetchall())
    assert (state, viewer) == ("done", None)
    assert found[Step.STATE] == {"beacons": 2, "recordings": 1}
    assert found[Step.RECORDINGS] == {"objects": 1}
    assert found[Step.EXPORTS] == {"exports": 1, "saved_views": 0}
    assert (found[Step.WAREHOUSE]["views"], found[Step.WAREHOUSE]["rejected"]) == (1, 2)
    # Where it may still be is shown, with the time at which it is gone.
    assert {"beacons", "views", "rejected", "recordings", "video_views.changelog"} <= set(found[Step.TOPICS])
    # No row is made of the open view that was deleted, nor of what its player sent before.
    rows = committed(broker.bootstrap, topics.VIEWS)
    assert not [row for row in rows if (row.key() or b"") == view_key("acme", "hers-open")]


async def _delete_exports(dsn: str, kept: Kept) -> None:
    postgres = pool.Postgres(dsn, service="test", connections_max=1, seconds_max=20, writes=True)
    await postgres.open()
    try:
        await Deleting(postgres, kept).look()
    finally:
        await postgres.close()
