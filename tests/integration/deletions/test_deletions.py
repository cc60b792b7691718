"""A viewer is deleted on real parts: broker, slots, finalizer, Postgres, objects, exports. Then every byte on disk is searched."""

import asyncio
import random
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from deploy.local.broker import Broker
from deploy.local.postgres import Postgres
from services.accounts.core.deletions import Step
from shared import topics
from shared.partitioning import view_key
from tests.integration.deletions.deleting import Feed, Kept, delete_exports, holding, looked_until, tables_holding
from tests.integration.finalizer.finalizing import Installation, wait_for_exit
from tests.integration.finalizer.warm_jvm import WarmJvm
from tests.integration.parts.brokers import topics_of
from tests.integration.parts.feed import committed
from tests.integration.parts.slots import Slot, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

#: Found nowhere else, and nothing that compresses: as an id, and in what the viewer sent.
VIEWER, MARKER, OTHER = (random.Random(name).randbytes(16).hex() for name in ("viewer", "marker", "other"))


@pytest.fixture(scope="module")
def broker_topics() -> Iterable[topics.Topic]:
    return {one.name: one for one in (*topics_of("video_views"), *topics_of("recordings"))}.values()


@contextmanager
def slots(broker: Broker, folder: Path) -> Iterator[None]:
    """A slot of views and one of recordings."""
    common = {
        "PROCESSOR_REWRITE_INTERVAL_MS": "100",
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


def test_nothing_of_a_viewer_is_left_on_any_disk_through_a_kill(
    broker: Broker, postgres: Postgres, tmp_path: Path, warm_jvm: WarmJvm
) -> None:
    dsn = postgres.create_database(f"deletions_{uuid4().hex}")
    feed, kept = Feed(broker), Kept(tmp_path / "exports")
    installation = Installation(tmp_path, broker.bootstrap, dsn, jvm=warm_jvm)
    options = {"applications": "recordings", "objects": str(tmp_path / "objects"), "deletion_settle_seconds": "0"}
    with slots(broker, tmp_path):
        for viewer, words, name in ((VIEWER, MARKER, "hers"), (OTHER, OTHER, "another")):
            feed.view(f"{name}-done", viewer, words, is_whole=True)
            feed.view(f"{name}-open", viewer, words, is_whole=False)
            feed.recording(f"session-{name}", words.encode())
            feed.rejected(viewer)
        kept.make("a", ["acme"], f"viewer_id\r\n{VIEWER}\r\n")
        kept.make("b", ["elsewhere"], f"viewer_id\r\n{OTHER}\r\n")
        looked_until(lambda: len(committed(broker.bootstrap, topics.VIEWS)) >= 2, "the whole views are finished", 180)
        stored = {"objects", "state-0"}
        looked_until(
            lambda: all(holding(tmp_path, one) >= stored for one in (MARKER, OTHER)),
            "all of both viewers is stored",
            120,
        )
        assert installation.run_once(**options) == 0
        everywhere = {"warehouse", "objects", "state-0", "exports"}
        for wanted in ((VIEWER, MARKER), (OTHER,)):
            looked_until(lambda wanted=wanted: holding(tmp_path, *wanted) == everywhere, "it is everywhere")  # type: ignore[misc]
        assert tables_holding(dsn, VIEWER, MARKER) == {"serving.views"}

        command = f"forget --customer acme --viewer {VIEWER} --session session-hers"
        # The process is killed between the work of its second step and the note of it.
        with installation.running(command, jvm=warm_jvm, crash_at="deletion_step:2", **options) as child:
            wait_for_exit(child)
            assert child.exit_code == -signal.SIGKILL
        with installation.running(command, jvm=warm_jvm, **options) as child:
            wait_for_exit(child)
            assert child.exit_code == 0, (tmp_path / "finalizer.log").read_text()[-3000:]
        asyncio.run(delete_exports(dsn, kept))

        assert "deletion_steps" not in tables_holding(dsn, VIEWER, MARKER)
        assert tables_holding(dsn, VIEWER, MARKER) == set()
        looked_until(lambda: not holding(tmp_path, VIEWER, MARKER), "files of open state are written again", 120)
        looked_until(lambda: holding(tmp_path, OTHER) == everywhere, "what is another's is where it was")
        assert tables_holding(dsn, OTHER) == {"serving.views"}
    # Topics still have it, and a checkpoint that is given up has them read from where they had landed.
    shutil.rmtree(tmp_path / "checkpoint")
    assert installation.run_once(**options) == 0
    assert holding(tmp_path, VIEWER, MARKER) == set()
    assert tables_holding(dsn, VIEWER, MARKER) == set()
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
