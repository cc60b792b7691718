"""The finalizer refuses to start when it would do harm, and says why."""

from pathlib import Path

import pytest

from services.finalizer import checkpoint_lock
from services.finalizer.checkpoint_lock import CheckpointInUse
from services.finalizer.session import JarsMissing, find_jars
from services.finalizer.settings import FinalizerSettings
from shared.settings import SettingsError


def test_a_second_driver_on_one_checkpoint_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    checkpoint = tmp_path / "new" / "checkpoint"
    with (
        checkpoint_lock.hold(checkpoint),
        pytest.raises(CheckpointInUse, match=r"in use by the process \d+"),
        checkpoint_lock.hold(checkpoint),
    ):
        pass


def test_the_checkpoint_is_free_again_when_its_driver_has_ended(tmp_path: Path) -> None:
    with checkpoint_lock.hold(tmp_path / "checkpoint"):
        pass
    with checkpoint_lock.hold(tmp_path / "checkpoint"):
        pass


def test_a_missing_jar_is_named(tmp_path: Path) -> None:
    (tmp_path / "delta-spark_4.2_2.13-4.4.0.jar").touch()
    with pytest.raises(JarsMissing, match="commons-pool2"):
        find_jars(tmp_path)


def test_settings_have_no_default_place_for_data() -> None:
    with pytest.raises(SettingsError, match="FINALIZER_WAREHOUSE_DIR must be set"):
        FinalizerSettings.load({"FINALIZER_POSTGRES_DSN": "postgresql://u:hunter2@db"})
