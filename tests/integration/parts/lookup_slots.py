"""Slots with lookups, and a client of them."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from deploy.local.broker import Broker
from deploy.local.ports import free_port
from services.rim.http.credentials import SCOPES, entry
from shared import codec, topics
from shared.partitioning import partition_of, view_key
from tests.integration.parts.feed import beacon
from tests.integration.parts.installed import PARTITIONS
from tests.integration.parts.slots import PROCESSOR, Slot, wait_until

TOKEN = "a token of sixteen or more"
_SLOTS_TOKEN = "that slots have among themselves"
#: The slots' own token, and a caller with `TOKEN` that may do everything.
LOOKUP_SECRETS = {
    "PROCESSOR_LOOKUP_TOKEN": _SLOTS_TOKEN,
    "PROCESSOR_LOOKUP_CREDENTIALS": entry("test", SCOPES, TOKEN),
}
VIEW_IDS = [f"view-{number}" for number in range(40)]
T0 = 1_790_000_000_000
#: A slot's answer: status and body.
Answer = tuple[int, Any]


def partition(view_id: str) -> int:
    """Where the view is folded."""
    return partition_of(view_key("acme", view_id), PARTITIONS)


class LookupSlot:
    """A slot with lookups, and a client of them."""

    def __init__(
        self, broker: Broker, folder: Path, number: int, *, program: tuple[str, ...] = PROCESSOR, **environ: str
    ) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.slot = Slot(
            broker.bootstrap,
            folder,
            number,
            program=program,
            PROCESSOR_LOOKUP_HOST="127.0.0.1",
            PROCESSOR_LOOKUP_PORT=str(port),
            PROCESSOR_LOOKUP_URL=self.url,
            **LOOKUP_SECRETS,
            **environ,
        )

    def get(self, path: str, **headers: str) -> Answer:
        """The answer; status 0 where there was none, and less than 0 for a 503 without `Retry-After`."""
        request = urllib.request.Request(self.url + path)
        for name, value in {"Authorization": f"Bearer {TOKEN}", **headers}.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                has_retry = error.code != 503 or error.headers["Retry-After"] == "1"
                return error.code if has_retry else -error.code, error.read()
        except (OSError, urllib.error.URLError):
            return 0, None

    def answer_to(self, path: str, **headers: str) -> Answer:
        """The answer, asked for again while it is 503: a slot or broker without CPU for a second gives that one, rightly."""
        answers: list[Answer] = []

        def is_answered() -> bool:
            answers.append(self.get(path, **headers))
            return answers[-1][0] != 503

        wait_until(is_answered, f"{path} is answered")
        return answers[-1]

    def view(self, view_id: str, query: str = "", **headers: str) -> Answer:
        """Its answer for a view of customer acme."""
        return self.get(f"/views/acme/{view_id}{query}", **headers)

    def knows(self, beacons: int, view_ids: list[str] = VIEW_IDS) -> bool:
        """Whether it answers for every one of these views, with this many beacons."""
        for view_id in view_ids:
            status, body = self.view(view_id)
            if status != 200 or body["found"]["row"]["beacon_count"] != beacons:
                return False
        return True

    def partitions(self) -> list[dict[str, Any]]:
        """Its rows of all partitions; none while it does not answer."""
        status, body = self.get("/partitions")
        return list(body["partitions"]) if status == 200 else []

    def worked_partitions(self) -> list[dict[str, Any]]:
        """Its rows of all partitions, once every one has an owner that answers for it."""
        seen: list[dict[str, Any]] = []

        def are_worked() -> bool:
            seen[:] = self.partitions()
            return bool(seen) and all(row["state"] == "working" for row in seen)

        wait_until(are_worked, "every owner answers for its partitions")
        return seen

    def metrics(self) -> dict[str, float]:
        """Its metrics: values by name with labels, as they stand in the text."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.slot.admin_port}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def owners(server: LookupSlot) -> set[str]:
    """Who works the partitions, when all of them are worked."""
    seen = server.partitions()
    return {str(row["owner"]) for row in seen} if all(row["state"] == "working" for row in seen) else set()


def send(broker: Broker, seqs: range) -> None:
    """The beacons with these sequence numbers, of every view."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for view_id in VIEW_IDS:
        for seq in seqs:
            event = "viewstart" if seq == 1 else "heartbeat"
            value = codec.BEACON.encode(beacon(view_id, seq, event, T0 + 1000 * seq, view_watch_time=1000 * seq))
            producer.produce(topics.BEACONS.name, value, view_key("acme", view_id), partition(view_id))
    assert producer.flush(30) == 0
