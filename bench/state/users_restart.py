"""How long a slot of `users` needs to restore its table: `python -m bench.state.users_restart [--users N] [--changed N]`.

Fills the changelog with users and their claims, as slots would have left them. A slot with an empty disk restores all of it (cold);
then users are changed over the REST API, and the slot is killed and started again on its disk (restart). Each time is from the
start of the process until it has returned one user of every partition. Checked before any figure: the table has every user, and
randomly chosen users are returned with their last change.
"""

import argparse
import http.client
import json
import os
import random
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.report import results
from deploy.local.broker import Broker
from deploy.local.ports import free_port
from deploy.local.process import Child
from deploy.topics import create_topics
from services.processor.applications.users.app import CLAIMS, USERS, application
from services.processor.applications.users.claims import EmailClaim
from services.processor.applications.users.settings import UserRules
from services.processor.applications.users.user import UserRow
from services.processor.engine.state.meta import META_KEY, Meta, encode_meta
from services.processor.engine.state.rows import pack
from services.processor.runtime.kafka.clients import partition_producer
from services.rim.http.credentials import entry
from shared import topics
from shared.partitioning import partition_of
from shared.settings import Settings

PARTITIONS: Final = topics.USER_COMMANDS.partitions(topics.PROFILES["laptop"])
GOAL_SECONDS: Final = 5.0
ROWS_A_COMMIT: Final = 5_000
ASKED: Final = 1_000
WRITERS: Final = 32
PHASE_SECONDS_MAX: Final = 1_800.0
_LOOK_SECONDS: Final = 0.05
#: The broker's times are later: nothing of the fill is in the future of a partition's clock.
_FILLED_MS: Final = 1_700_000_000_000
_TOKEN: Final = secrets.token_hex()
_APPLICATION: Final = application(UserRules())


class WrongTable(RuntimeError):
    """The slot returns a wrong answer."""


def user_id(number: int) -> str:
    """The id of a user, spread like a UUID."""
    return f"{number * 0x9E3779B97F4A7C15 & (1 << 128) - 1:032x}"


class Slot:
    """One slot with all partitions, with defaults."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._admin_port, self._port = free_port(), free_port()
        self._log = folder / "slot.log"
        environ = {
            **os.environ,
            "PLAYHEAD_KAFKA_BOOTSTRAP": broker.bootstrap,
            "PROCESSOR_APPLICATION": "users",
            "PROCESSOR_STATE_DIR": str(folder / "state"),
            "PROCESSOR_ADMIN_HOST": "127.0.0.1",
            "PROCESSOR_ADMIN_PORT": str(self._admin_port),
            "PROCESSOR_LOOKUP_HOST": "127.0.0.1",
            "PROCESSOR_LOOKUP_PORT": str(self._port),
            "PROCESSOR_LOOKUP_URL": f"http://127.0.0.1:{self._port}",
            "PROCESSOR_LOOKUP_TOKEN": secrets.token_hex(),
            "PROCESSOR_LOOKUP_CREDENTIALS": entry("bench", ["read", "write", "partitions"], _TOKEN),
            "PROCESSOR_REQUEST_MS_MAX": "60000",
        }
        self.child = Child("slot", [sys.executable, "-m", "services.processor"], log_file=self._log, env=environ)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request; status 0 where there was no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=90)
        headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()

    def back(self, witnesses: list[str]) -> float:
        """Starts it; seconds until it has returned each of these users."""
        began = time.monotonic()
        self.child.start()
        for each in witnesses:
            self.wait(partial(self._has, each), "a user is served")
        return time.monotonic() - began

    def _has(self, user: str) -> bool:
        return self.call("GET", f"/users/{user}")[0] == 200

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Waits for a condition while the slot runs. It looks as often as a figure of seconds needs."""
        self.child.wait_until(condition, PHASE_SECONDS_MAX, what, every=_LOOK_SECONDS)

    def rows(self, store: str) -> int:
        """Number of existing rows in all partitions; -1 while a partition is not taken over."""
        status, overview = self.call("GET", "/partitions")
        if status != 200 or any(row["state"] != "working" for row in overview["partitions"]):
            return -1
        return sum(row["rows"].get(store, 0) for row in overview["partitions"])

    def replayed(self) -> int:
        """Changelog rows that its last start has read."""
        events = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        takeovers = [event for event in events if event.get("event") == "partition_taken_over"]
        return sum(int(event["replayed_rows"]) for event in takeovers[-PARTITIONS:])


def main() -> int:
    """Runs, prints and stores the figures. 1 when an answer is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.users_restart", description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--changed", type=int, default=2_000, help="over the REST API, before the restart")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="users") as folder, Broker(Path(folder) / "broker") as broker:
        settings = Settings(kafka_bootstrap=broker.bootstrap)
        create_topics(settings)
        _fill(settings, given.users)
        slot = Slot(broker, Path(folder))
        try:
            _measure(slot, given.users, min(given.changed, given.users))
        except WrongTable as wrong:
            print(f"users_restart: {wrong}", file=sys.stderr)
            return 1
        finally:
            slot.child.kill()
    return 0


def _measure(slot: Slot, users: int, changed: int) -> None:
    witnesses = _one_of_each_partition(users)
    cold = slot.back(witnesses)
    cold_rows = slot.replayed()
    slot.wait(lambda: slot.rows("users") == users, "it works every partition")

    def change(number: int) -> int:
        return slot.call("PATCH", f"/users/{user_id(number)}", {"name": "changed"})[0]

    with ThreadPoolExecutor(WRITERS) as pool:
        if set(pool.map(change, range(changed))) != {200}:
            raise WrongTable("a change was refused")
    slot.child.kill()
    restart = slot.back(witnesses)
    _check(slot, users, changed)
    compared = [
        results.Compared(
            "restart on its disk, s", f"{restart:.1f}", f"< {GOAL_SECONDS:g}", is_met=restart < GOAL_SECONDS
        ),
        results.Compared("changelog rows read by the restart", f"{slot.replayed():,}"),
        results.Compared("start with an empty disk, s", f"{cold:.1f}"),
        results.Compared("changelog rows read by that start", f"{cold_rows:,}"),
    ]
    results.keep(
        results.Part(
            name="users_restart",
            title=f"Restart of a slot with {users:,} users",
            command=f"python -m bench.state.users_restart --users {users} --changed {changed}",
            checked=f"every user stands; of {ASKED:,} chosen at random, each is answered as it was last changed",
            compared=compared,
            lines=[f"{changed:,} users are changed over the REST API before the restart."],
        )
    )
    print(f"{users:,} users on {PARTITIONS} partitions, {changed:,} changed before the restart")
    for each in compared:
        print(f"{each.what:<32}{each.value:>12}  {each.goal}")


def _check(slot: Slot, users: int, changed: int) -> None:
    if slot.rows("users") != users:
        raise WrongTable(f"{slot.rows('users'):,} users stand, not {users:,}")
    for number in random.Random(1).sample(range(users), min(ASKED, users)):
        status, user = slot.call("GET", f"/users/{user_id(number)}")
        wanted = ("changed", 2) if number < changed else ("A user", 1)
        if status != 200 or (user["name"], user["version"]) != wanted:
            raise WrongTable(f"user {number} is served as {status} {user}")


def _one_of_each_partition(users: int) -> list[str]:
    found: dict[int, str] = {}
    for number in range(users):
        found.setdefault(partition_of(user_id(number).encode(), PARTITIONS), user_id(number))
        if len(found) == PARTITIONS:
            break
    return list(found.values())


def _fill(settings: Settings, users: int) -> None:
    """Commits each user's row and its claim, each in its partition."""
    rows: dict[int, list[tuple[bytes, bytes]]] = {partition: [] for partition in range(PARTITIONS)}
    for number in range(users):
        key, email = user_id(number).encode(), f"user{number}@example.org"
        user = UserRow(email, "A user", {"team": "red"}, 1, _FILLED_MS, _FILLED_MS, number)
        claim = EmailClaim(key.decode(), number, is_confirmed=True)
        rows[partition_of.__wrapped__(key, PARTITIONS)].append((bytes([USERS.id]) + key, pack(0, USERS.encode(user))))
        address = email.encode()
        rows[partition_of.__wrapped__(address, PARTITIONS)].append(
            (bytes([CLAIMS.id]) + address, pack(0, CLAIMS.encode(claim)))
        )
    threads = [threading.Thread(target=_fill_one, args=(settings, *item)) for item in rows.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _fill_one(settings: Settings, partition: int, rows: list[tuple[bytes, bytes]]) -> None:
    producer = partition_producer(settings, _APPLICATION, partition)
    producer.init_transactions(60)
    changelog = _APPLICATION.changelog.name
    counts = {USERS.id: 0, CLAIMS.id: 0}
    for start in range(0, len(rows), ROWS_A_COMMIT):
        producer.begin_transaction()
        for key, row in rows[start : start + ROWS_A_COMMIT]:
            counts[key[0]] += 1
            producer.produce(changelog, row, key, partition)
        meta = Meta({}, _FILLED_MS, start // ROWS_A_COMMIT + 1, rows=counts)
        producer.produce(changelog, encode_meta(meta), META_KEY, partition)
        producer.commit_transaction(60)


if __name__ == "__main__":
    sys.exit(main())
