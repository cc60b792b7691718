"""A stream's checkpoint is held to its warehouse and its topic; one that is not whole is recreated, or refused with what to do."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from services.finalizer.warehouse.identity import CheckpointForeign, hold_to

pytestmark = pytest.mark.integration


def hold(spark: SparkSession, folder: Path, warehouse: str = "w", topic_id: str = "t") -> bool:
    return hold_to(spark, str(folder), warehouse=warehouse, topic="beacons", topic_id=topic_id)


def test_a_checkpoint_is_held_to_what_it_belongs_to(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "bronze"
    assert hold(spark, folder), "there is none yet"
    # What Spark writes before the first batch is planned: a start that was cut off here has landed nothing.
    (folder / "offsets").mkdir()
    (folder / "metadata").write_text('{"id":"q"}')
    (folder / "sources" / "0").mkdir(parents=True)
    (folder / "sources" / "0" / "0").write_text('{"beacons":{"0":0}}')
    assert hold(spark, folder, topic_id="recreated")
    assert not (folder / "sources").exists(), "where it meant to begin may be wrong by now"
    (folder / "identity.json").write_text("")
    assert hold(spark, folder), "a file that was cut off"

    (folder / "offsets").mkdir()
    (folder / "offsets" / "0").write_text("v1")
    (folder / "metadata").write_text('{"id":"q"}')
    assert not hold(spark, folder)

    with pytest.raises(CheckpointForeign, match="before topic beacons was recreated: remove that folder"):
        hold(spark, folder, topic_id="recreated")
    with pytest.raises(CheckpointForeign, match="another generation of the warehouse"):
        hold(spark, folder, warehouse="other")
    for lost in ("metadata", "identity.json"):
        half = tmp_path / lost
        shutil.copytree(folder, half)
        (half / lost).unlink()
        with pytest.raises(CheckpointForeign, match="is half of one"):
            hold(spark, half)
    noted = json.loads((folder / "identity.json").read_text())
    (folder / ".identity.json.crc").unlink()
    (folder / "identity.json").write_text(json.dumps(noted | {"format": 99}))
    with pytest.raises(CheckpointForeign, match="newer version"):
        hold(spark, folder)
