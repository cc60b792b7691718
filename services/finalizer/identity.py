"""What a checkpoint belongs to: its warehouse and its topics. With any other, its offsets would mean other records."""

import json
from typing import Any, Final

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from services.finalizer import tables
from services.rim.kafka import BOOT_SECONDS_MAX, client_config
from shared.settings import Settings

_FORMAT: Final = 1


class CheckpointForeign(RuntimeError):
    """The checkpoint was made for another warehouse, or for topics that are gone; the text says what to do."""


def hold_to(spark: SparkSession, checkpoint: str, warehouse: str, topic_ids: dict[str, str]) -> None:
    """Notes in a new checkpoint what it belongs to; raises `CheckpointForeign` where that is something else."""
    found = spark.sql(f"DESCRIBE DETAIL {tables.VIEWS.sql_name(warehouse)}").select("id").collect()
    now = {"format": _FORMAT, "warehouse": str(found[0]["id"]), "topics": topic_ids}
    path = f"{checkpoint}/identity.json"
    noted = _read(spark, path)
    if noted is None:
        _write(spark, path, json.dumps(now))
        return
    if noted["format"] > _FORMAT:
        raise CheckpointForeign(f"checkpoint {checkpoint} is of a newer version: run that one")
    remedy = "give FINALIZER_CHECKPOINT_DIR a new folder: topics are read from the beginning and nothing is doubled"
    if noted["warehouse"] != now["warehouse"]:
        raise CheckpointForeign(
            f"checkpoint {checkpoint} belongs to another generation of the warehouse than {warehouse}:"
            f" give it its own FINALIZER_WAREHOUSE_DIR, or {remedy}"
        )
    gone = sorted(name for name, topic_id in noted["topics"].items() if topic_ids.get(name) != topic_id)
    if gone:
        raise CheckpointForeign(
            f"checkpoint {checkpoint} was made before {', '.join(gone)} was made anew, so its offsets mean other"
            f" records: {remedy}"
        )


def is_new(spark: SparkSession, checkpoint: str, stream: str) -> bool:
    """Whether a stream has no checkpoint yet."""
    _, files, where = _file(spark, f"{checkpoint}/{stream}/offsets")
    return not files.exists(where)


def topic_ids(settings: Settings, topics: list[str]) -> dict[str, str]:
    """The ids that the cluster gave the topics: a topic that is made anew gets another."""
    admin = AdminClient(client_config(settings, "finalizer-identity"))
    asked = admin.describe_topics(TopicCollection(topics), request_timeout=BOOT_SECONDS_MAX)
    return {name: str(answer.result().topic_id) for name, answer in asked.items()}


def _read(spark: SparkSession, path: str) -> Any:
    jvm, files, where = _file(spark, path)
    if not files.exists(where):
        return None
    stream = files.open(where)
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    # A crash between making the file and filling it leaves an empty one.
    return json.loads(text) if text else None


def _write(spark: SparkSession, path: str, text: str) -> None:
    _, files, where = _file(spark, path)
    stream = files.create(where, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def _file(spark: SparkSession, path: str) -> tuple[Any, Any, Any]:
    """Hadoop's file system of the path: local or an object store's."""
    context: Any = spark.sparkContext
    where = context._jvm.org.apache.hadoop.fs.Path(path)
    return context._jvm, where.getFileSystem(context._jsc.hadoopConfiguration()), where
