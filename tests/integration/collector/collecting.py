"""Collector processes for tests, and what is in Kafka when they are done."""

import asyncio
import contextlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from deploy.local.ports import free_port
from deploy.local.process import Child
from services.collector.sink.records import Record
from shared.topics import ProfileName
from tests.integration.parts.installed import PROFILE, variables

#: In which everything must have come; generous, for a busy machine.
SECONDS_MAX = 120.0


class Collector:
    """A collector process on `port`; several may share one."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        port: int,
        name: str = "c",
        *,
        profile: ProfileName = PROFILE,
        environ: Mapping[str, str] | None = None,
        **settings: str,
    ) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.admin = f"http://127.0.0.1:{(admin_port := free_port())}"
        ours = {
            **variables(bootstrap, profile),
            "COLLECTOR_HOST": "127.0.0.1",
            "COLLECTOR_PORT": str(port),
            "COLLECTOR_ADMIN_HOST": "127.0.0.1",
            "COLLECTOR_ADMIN_PORT": str(admin_port),
            "COLLECTOR_ID": name,
            "COLLECTOR_DRAIN_NOTICE_SECONDS": "0.5",
        }
        theirs = {key: value for key, value in os.environ.items() if not key.startswith(("COLLECTOR_", "PLAYHEAD_"))}
        self.child = Child(
            name,
            [sys.executable, "-m", "services.collector"],
            log_file=folder / f"{name}.log",
            env=theirs
            | ours
            | dict(environ or {})
            | {f"COLLECTOR_{key.upper()}": value for key, value in settings.items()},
        )

    def __enter__(self) -> "Collector":
        self.child.start()
        self.child.wait_until(lambda: self.status("/readyz") == 200, SECONDS_MAX, "ready")
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()

    def status(self, path: str) -> int:
        """The status of an admin path; 0 when nothing listens."""
        try:
            with urllib.request.urlopen(self.admin + path, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def metric(self, sample: str) -> float:
        """A sample of `/metrics` by its name with labels; 0 when there is none."""
        with urllib.request.urlopen(self.admin + "/metrics", timeout=SECONDS_MAX) as answer:
            for line in answer.read().decode().splitlines():
                name, _, value = line.rpartition(" ")
                if name == sample:
                    return float(value)
        return 0.0

    def peak_bytes(self) -> int:
        """The most memory that the process has had resident."""
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))

    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.child.log_file.read_text().splitlines()]


_NO_LEADER_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


def _end_of(consumer: Consumer, partition: TopicPartition) -> int:
    """The partition's end. A broker that has only just started answers that it does not lead the partition yet."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            end: int = consumer.get_watermark_offsets(partition, timeout=SECONDS_MAX)[1]
        except KafkaException as error:
            if error.args[0].code() not in _NO_LEADER_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return end


class Reader:
    """Reads a topic's records from where it ended when the reader was made."""

    def __init__(self, bootstrap: str, *topics: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        known = self._consumer.list_topics(timeout=SECONDS_MAX).topics
        partitions = [TopicPartition(topic, number) for topic in topics for number in known[topic].partitions]
        for partition in partitions:
            partition.offset = _end_of(self._consumer, partition)
        self._consumer.assign(partitions)
        self.records: list[Record] = []

    def until(self, enough: Callable[[list[Record]], bool], seconds: float = SECONDS_MAX) -> list[Record]:
        """All records since the reader was made, as soon as they are enough."""
        deadline = time.monotonic() + seconds
        while not enough(self.records):
            assert time.monotonic() < deadline, f"only {len(self.records)} records"
            # Many at once: `enough` looks at all of them, so asking after each would take quadratic time.
            for message in self._consumer.consume(10_000, timeout=0.2):
                if message.error() is not None:
                    continue
                topic, partition = message.topic(), message.partition()
                assert topic is not None
                assert partition is not None
                headers = message.headers() or []
                self.records.append(Record(topic, partition, message.key(), message.value() or b"", list(headers)))
        return self.records

    def close(self) -> None:
        self._consumer.close()


@contextlib.contextmanager
def reading(bootstrap: str, *topics: str) -> Iterator[Reader]:
    reader = Reader(bootstrap, *topics)
    try:
        yield reader
    finally:
        reader.close()


async def answered(
    client: aiohttp.ClientSession, url: str, body: bytes, headers: Mapping[str, str] | None = None
) -> int:
    """The status of a POST on a connection of its own; 0 when there was no answer."""
    try:
        async with client.post(url, data=body, headers={"Connection": "close", **(headers or {})}) as answer:
            return answer.status
    except aiohttp.ClientError:
        return 0


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
