"""docs/state.md, section by section: its commands as they stand there, killed at each step, and refused while unsafe."""

import re
import shlex
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from deploy.local.broker import Broker
from shared import codec, topics
from tests.documents import run_by
from tests.integration.parts.failing import Scene, scene_of
from tests.integration.parts.feed import beacon, observed, uncommitted
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import ROOT, Slot, wait_until
from tests.integration.processor.operators.commanding import KILLED, Commands

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PAGE: Final = ROOT / "docs/state.md"
#: A slot that gets no CPU for two seconds is at work still: a command that it holds up would go through.
OPEN: Final = {"VIDEO_VIEWS_FINISH_SILENT_MS": "600000", "PROCESSOR_SESSION_MS": "10000"}
#: Of views that stay open between their halves.
VIEWS: Final = [f"half-{number}" for number in range(3 * PARTITIONS)]
STARTED_MS: Final = 1_790_000_000_000
PASSED: Final = [f"passed-{number}" for number in range(3 * PARTITIONS)]
WHOLE: Final = (5, 5000, "clean")


def send(scene: Scene, view_id: str, *, first: bool = False, last: bool = False) -> None:
    """Halves of a view: its start, or its end, which comes when a slot has the state of the first half."""
    halves = [(1, "viewstart"), (2, "playing"), (3, "heartbeat")] * first + [(4, "heartbeat"), (5, "viewend")] * last
    beacons = [
        beacon(view_id, seq, event, STARTED_MS + seq * 1000, view_watch_time=seq * 1000) for seq, event in halves
    ]
    scene.send(b"acme:" + view_id.encode(), *map(codec.BEACON.encode, beacons))


def send_all(scene: Scene, *, first: bool = False, last: bool = False) -> None:
    for view_id in VIEWS:
        send(scene, view_id, first=first, last=last)


def section(title: str, **instead: str) -> list[tuple[list[str], list[str]]]:
    """The commands of a section of the page: variables before each, and its words. `instead` of what a reader replaces."""
    text = PAGE.read_text()
    begin = text[: text.index(f"## {title}\n")].count("\n") + 1
    end = begin + len(re.split(r"^## ", text[text.index(f"## {title}\n") + 3 :], flags=re.MULTILINE)[0].splitlines())
    lines = [line for one in run_by(__file__) if begin < one.line <= end for line in one.text.splitlines()]
    assert lines, f"{title} has commands"
    found = []
    for line in lines:
        for name, value in {"/tmp/saved": instead.get("folder", "/tmp/saved"), **instead}.items():
            line = line.replace(name, value)  # noqa: PLW2901
        words = shlex.split(line, comments=True)
        variables = [word for word in words if re.match(r"[A-Z_]+=", word)]
        found.append((variables, words[len(variables) :]))
    return found


def rows_of(done: list[dict[str, Any]]) -> int:
    return sum(one["rows"] for one in done)


def folded(scene: Scene) -> None:
    """Waits until all that was sent is committed."""
    wait_until(lambda: not uncommitted(scene.bootstrap, "video_views", topics.BEACONS), "everything is committed")


def stop(scene: Scene, slot: Slot) -> None:
    """Stops the slot, and waits until the group has no member: one whose leave was lost is one until its session ends."""
    assert slot.terminate() == 0
    admin, group = AdminClient({"bootstrap.servers": scene.bootstrap}), "video_views"
    wait_until(lambda: not admin.describe_consumer_groups([group])[group].result().members, "the group has no member")


def rows_now(scene: Scene) -> dict[str, tuple[int, int, str]]:
    return observed(scene.rows.read())


@pytest.fixture
def commands(scene: Scene, tmp_path: Path) -> Commands:
    return Commands(scene.bootstrap, tmp_path)


def test_a_savepoint_moves_to_another_cluster_as_the_page_says(
    scene: Scene, commands: Commands, tmp_path: Path
) -> None:
    slot = scene.started(**OPEN)
    send_all(scene, first=True)
    folded(scene)
    saved = tmp_path / "saved"
    (tmp_path / "there").mkdir()
    with Broker(tmp_path / "second") as second, scene_of(second.bootstrap, tmp_path / "there", second) as there:
        dry, export, create, dry_import, taken = section(
            "Move an application to another cluster", **{"/tmp/saved": str(saved), "new:9092": second.bootstrap}
        )
        elsewhere = Commands(second.bootstrap, tmp_path / "there")
        assert [variables for variables, _ in (create, dry_import, taken)] == [
            [f"PLAYHEAD_KAFKA_BOOTSTRAP={second.bootstrap}"]
        ] * 3
        # Under a slot at work, killed after its second partition, and run again.
        assert commands.run(*export[1][3:], crash_at="rows_written:2")[0] == KILLED
        commands.refused("holds no savepoint", *taken[1][3:])
        assert rows_of(commands.done(*dry[1][3:])) >= len(VIEWS)
        assert not list(saved.glob("*.json"))
        stop(scene, slot)
        rows = rows_of(commands.done(*export[1][3:]))
        commands.refused("is not empty", *export[1][3:])

        assert elsewhere.run(*taken[1][3:])[0] == 3, "it has no topics"
        elsewhere.done(module="deploy.topics")
        elsewhere.refused("is another topic than that of the savepoint", *taken[1][3:-1], "keep")
        assert rows_of(elsewhere.done(*dry_import[1][3:])) == rows
        elsewhere.killed_at_each_step(*taken[1][3:])
        elsewhere.refused("has state already", *taken[1][3:])
        there.started(**OPEN)
        send_all(there, last=True)
        there.also |= dict.fromkeys(VIEWS, WHOLE)
        there.expect_truth()
    assert rows_now(scene) == {}


def test_a_savepoint_moves_to_another_id_as_the_page_says(scene: Scene, commands: Commands, tmp_path: Path) -> None:
    slot = scene.started(**OPEN)
    send_all(scene, first=True)
    folded(scene)
    stop(scene, slot)
    export, chosen, create, dry_import, taken = section(
        "Move an application to another id", **{"/tmp/saved": str(tmp_path / "saved")}
    )
    rows = rows_of(commands.done(*export[1][3:]))
    name, _, value = chosen[0][0].partition("=")
    (tmp_path / "moved").mkdir()
    moved = Commands(scene.bootstrap, tmp_path / "moved", **{name: value})
    assert moved.run(*taken[1][3:])[0] == 3, "it has no changelog"
    moved.done(module=create[1][2])
    assert rows_of(moved.done(*dry_import[1][3:])) == rows
    moved.killed_at_each_step(*taken[1][3:])
    moved.refused("has state already", *taken[1][3:])
    assert len(commands.held()) == PARTITIONS, "the former state is as it was"
    # What the group is told: where the inputs are read next.
    at = [TopicPartition(topics.BEACONS.name, number) for number in range(PARTITIONS)]
    consumer = Consumer({"bootstrap.servers": scene.bootstrap, "group.id": "video_views-b"})
    offsets = {one.partition: one.offset for one in consumer.committed(at, timeout=30) if one.offset >= 0}
    consumer.close()
    assert offsets == {one.partition: offset for one in moved.held() for offset in one.next_offsets.values()}
    scene.started(**OPEN, **{name: value})
    send_all(scene, last=True)
    scene.also |= dict.fromkeys(VIEWS, WHOLE)
    scene.expect_truth()


def test_the_state_goes_back_to_a_savepoint_as_the_page_says(scene: Scene, commands: Commands, tmp_path: Path) -> None:
    """Open views are put back as they were, and what came after the savepoint is folded again."""
    slot = scene.started(**OPEN)
    send_all(scene, first=True)
    folded(scene)
    reset, taken = (
        words[3:] for _, words in section("Go back to a savepoint", **{"/tmp/saved": str(tmp_path / "saved")})
    )
    commands.done("state", "export", "--to", str(tmp_path / "saved"))
    for act in (reset, taken):
        commands.refused("slots of video_views are at work: test/0", *act)
        commands.refused("slots of video_views are at work: test/0", *act, "--dry-run")
    # After the savepoint: it is folded twice.
    send(scene, "after", first=True)
    folded(scene)
    stop(scene, slot)
    commands.refused("has state already", *taken, "--dry-run")
    commands.killed_at_each_step(*reset)
    commands.killed_at_each_step(*taken)
    commands.refused("has state already", *taken)
    # Its local store has rows of before the reset.
    slot.start()
    for view_id in [*VIEWS, "after"]:
        send(scene, view_id, last=True)
    scene.also |= dict.fromkeys([*VIEWS, "after"], WHOLE)
    scene.expect_truth()
    stop(scene, slot)


def test_state_begins_as_new_and_records_are_skipped_and_replayed_as_the_page_says(
    scene: Scene, commands: Commands
) -> None:
    slot = scene.started(**OPEN)
    send_all(scene, first=True)
    folded(scene)
    dry_reset, reset = (words[3:] for _, words in section("Begin as new"))
    dry_skip, skip, replay = (words[3:] for _, words in section("Skip or replay records"))
    for act in (reset, skip, replay):
        commands.refused("slots of video_views are at work: test/0", *act)
    stop(scene, slot)

    assert rows_of(commands.done(*dry_reset)) >= len(VIEWS)
    commands.killed_at_each_step(*reset)
    assert rows_of(commands.done(*dry_reset)) == 0

    # What comes now is passed over: first in one partition.
    now = datetime.fromtimestamp(time.time(), UTC)
    for view_id in PASSED:
        send(scene, view_id, first=True, last=True)
    commands.refused("has offsets", *skip)
    ahead = {one["partition"]: one for one in commands.done(*dry_skip)}
    assert sum(one["records"] for one in ahead.values()) == 5 * len(PASSED)
    third = [word if word != "120000" else str(ahead[3]["after"]) for word in skip]
    commands.killed_at_each_step(*third)
    assert commands.done(*third) == []
    commands.done("state", "skip", "beacons", "--to-end")
    slot.start()
    send(scene, "behind", first=True, last=True)
    scene.also = {"behind": WHOLE}
    scene.expect_truth()
    stop(scene, slot)

    # Replayed, it is folded: with what has been counted already.
    since = [word if not word.startswith("2026-") else now.isoformat() for word in replay]
    assert commands.done(*since, "--dry-run")
    commands.killed_at_each_step(*since)
    assert commands.done(*since) == []
    slot.start()
    wait_until(lambda: set(PASSED) <= set(rows_now(scene)), "what was passed over has rows")
    folded(scene)
    assert rows_now(scene) == dict.fromkeys([*PASSED, "behind"], WHOLE), "folded twice, counted once"
    stop(scene, slot)


def test_the_rows_of_one_key_are_read_and_deleted_as_the_page_says(scene: Scene, commands: Commands) -> None:
    slot = scene.started(**OPEN)
    send(scene, "view-1", first=True)
    send(scene, "view-10", first=True)
    folded(scene)
    read, dry, delete = (words[3:] for _, words in section("The rows of one key"))
    (row,) = [one for one in commands.done(*read) if one["store"] == "views"]
    assert (row["key"], row["row"] is not None) == ("acme:view-1", True)
    commands.refused("slots of video_views are at work: test/0", *delete)
    stop(scene, slot)
    before = rows_of([{"rows": one.rows} for one in commands.held()])
    assert commands.done(*dry)["rows"] > 0
    commands.killed_at_each_step(*delete)
    commands.refused("has no rows of this key", *delete)
    assert commands.done(*read) == []
    assert rows_of([{"rows": one.rows} for one in commands.held()]) < before
    # What comes of it later begins a new view, without copies; its neighbour, whose key begins alike, has lost nothing.
    slot.start()
    send(scene, "view-1", first=True, last=True)
    send(scene, "view-10", last=True)
    scene.also = dict.fromkeys(["view-1", "view-10"], WHOLE)
    scene.expect_truth()
    stop(scene, slot)
