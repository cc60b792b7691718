"""The warehouse and topic of a stream's checkpoint. With any other topic, its offsets would mean other records."""

import json
from typing import Any, Final

import structlog
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from services.finalizer.failures import JobFailed
from services.finalizer.warehouse import tables
from services.finalizer.warehouse.hadoop_files import hadoop_file
from services.finalizer.warehouse.table_log import described
from services.rim.kafka.connection import BOOT_SECONDS_MAX, client_config
from shared.settings import Settings

log = structlog.get_logger(__name__)

_FORMAT: Final = 2


class CheckpointForeign(JobFailed):
    """The checkpoint was made for another warehouse or a topic that is gone, or is no whole one; the text says what to do."""


def warehouse_id(spark: SparkSession, warehouse: str) -> str:
    """The id of the generation of the warehouse: that of its table `views`."""
    found = described(spark, tables.VIEWS.path(warehouse))
    assert found is not None, "tables are there before a stream starts"
    return found.id


def topic_ids(settings: Settings, topics: list[str]) -> dict[str, str]:
    """The ids that the cluster gave the topics: a topic that is recreated gets another."""
    admin = AdminClient(client_config(settings, "finalizer-identity"))
    asked = admin.describe_topics(TopicCollection(topics), request_timeout=BOOT_SECONDS_MAX)
    return {name: str(answer.result().topic_id) for name, answer in asked.items()}


def hold_to(spark: SparkSession, folder: str, *, warehouse: str, topic: str, topic_id: str) -> bool:
    """Holds a stream's checkpoint to what it belongs to; whether it is new, so that the stream begins where its table ends.

    `warehouse` and `topic_id` are ids. A start that was interrupted before its first batch has landed nothing, and is repeated: its
    first offsets may be outdated. Raises `CheckpointForeign`.
    """
    now = {"format": _FORMAT, "warehouse": warehouse, "topics": {topic: topic_id}}
    if not _has_begun(spark, folder):
        _recreate(spark, folder, json.dumps(now))
        return True
    remedy = "remove that folder, or give FINALIZER_CHECKPOINT_DIR a new one: nothing is lost or doubled"
    noted = _read(spark, f"{folder}/identity.json")
    # `metadata` has the name under which the tables know what has landed.
    if noted is None or not _read(spark, f"{folder}/metadata"):
        raise CheckpointForeign(
            f"checkpoint {folder} is half of one, or of an older version: it has offsets and does not say whose; {remedy}"
        )
    if noted["format"] > _FORMAT:
        raise CheckpointForeign(f"checkpoint {folder} is of a newer version: run that one")
    if noted["warehouse"] != warehouse:
        raise CheckpointForeign(
            f"checkpoint {folder} belongs to another generation of the warehouse:"
            f" give it its own FINALIZER_WAREHOUSE_DIR; or {remedy}"
        )
    if noted["topics"] != now["topics"]:
        raise CheckpointForeign(f"checkpoint {folder} was created before topic {topic} was recreated: {remedy}")
    return False


def noted_topics(spark: SparkSession, folder: str) -> dict[str, str]:
    """Which topic a stream's checkpoint belongs to, and its id; empty where there is no checkpoint."""
    noted = _read(spark, f"{folder}/identity.json")
    return {} if noted is None else dict(noted["topics"])


def _has_begun(spark: SparkSession, folder: str) -> bool:
    """Whether any batch was ever planned: Spark notes its offsets before it is run."""
    _, files, where = hadoop_file(spark, f"{folder}/offsets")
    return bool(files.exists(where)) and any(
        status.getPath().getName().isdecimal() for status in files.listStatus(where)
    )


def _recreate(spark: SparkSession, folder: str, identity: str) -> None:
    _, files, where = hadoop_file(spark, folder)
    if files.exists(where):
        log.info("checkpoint_recreated", folder=folder)
        files.delete(where, True)
    # A crash in here leaves a checkpoint without offsets: the next start creates it again.
    _, files, where = hadoop_file(spark, f"{folder}/identity.json")
    stream = files.create(where, True)
    try:
        stream.write(bytearray(identity.encode()))
    finally:
        stream.close()


def _read(spark: SparkSession, path: str) -> Any:
    """A JSON file; None where it is absent or empty."""
    jvm, files, where = hadoop_file(spark, path)
    if not files.exists(where):
        return None
    stream = files.open(where)
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    return json.loads(text) if text else None
