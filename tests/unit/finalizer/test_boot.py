"""The finalizer refuses to start when it would do harm, and says why."""

import socket
import threading
from pathlib import Path

import pytest

from services.finalizer.__main__ import land
from services.finalizer.settings import FinalizerSettings
from services.finalizer.warehouse import checkpoint_lock
from services.finalizer.warehouse.checkpoint_lock import CheckpointInUse
from services.finalizer.warehouse.session import JarsMissing, find_jars, jvm_options
from shared.settings import SettingsError


def test_a_second_driver_on_one_checkpoint_is_refused_and_reported_who_has_it(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "new" / "checkpoint")
    with (
        checkpoint_lock.hold(checkpoint),
        pytest.raises(CheckpointInUse, match=r"in use by the process \d+"),
        checkpoint_lock.hold(checkpoint),
    ):
        pass


def test_the_checkpoint_is_free_again_when_its_driver_has_ended(tmp_path: Path) -> None:
    with checkpoint_lock.hold(str(tmp_path / "checkpoint")):
        pass
    with checkpoint_lock.hold(str(tmp_path / "checkpoint")):
        pass


def test_a_stream_that_runs_is_met_at_its_checkpoint_and_not_at_its_port(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "checkpoint")
    with socket.create_server(("127.0.0.1", 0)) as taken, checkpoint_lock.hold(checkpoint):
        port = str(taken.getsockname()[1])
        settings = FinalizerSettings.load(_environment(checkpoint_dir=checkpoint, admin_port=port))
        with pytest.raises(CheckpointInUse):
            land(settings, threading.Event(), once=False)


def test_a_missing_jar_is_named(tmp_path: Path) -> None:
    (tmp_path / "delta-spark_4.2_2.13-4.4.0.jar").touch()
    with pytest.raises(JarsMissing, match="commons-pool2"):
        find_jars(tmp_path)


def test_settings_have_no_default_place_for_data() -> None:
    with pytest.raises(SettingsError, match="FINALIZER_WAREHOUSE_DIR must be set"):
        FinalizerSettings.load({"FINALIZER_POSTGRES_DSN": "postgresql://u:hunter2@db"})


def test_rollups_are_kept_no_longer_than_the_views_they_are_rebuilt_from() -> None:
    with pytest.raises(SettingsError, match="FINALIZER_ROLLUPS_DAYS must be at least 7 fewer"):
        FinalizerSettings.load(_environment(views_days="30", minutes_days="7"))
    with pytest.raises(SettingsError, match="FINALIZER_MINUTES_DAYS"):
        FinalizerSettings.load(_environment(views_days="30", rollups_days="23", minutes_days="24"))
    FinalizerSettings.load(_environment(views_days="30", rollups_days="23", minutes_days="7"))


def test_hot_rows_are_kept_for_longer_than_the_day_between_two_rows_of_a_view() -> None:
    for days in ("0", "1.25", "7"):
        assert FinalizerSettings.load(_environment(recent_days=days)).recent_days == float(days)
    with pytest.raises(SettingsError, match="FINALIZER_RECENT_DAYS"):
        FinalizerSettings.load(_environment(recent_days="1"))


def test_what_rollups_are_broken_down_by_is_chosen_and_the_total_is_always_there() -> None:
    settings = FinalizerSettings.load(_environment(rollup_by="cdn,country+device"))
    assert settings.sets == ((), ("cdn",), ("country", "device"), ("source",))
    assert FinalizerSettings.load(_environment(rollup_by="")).sets == ((), ("source",))
    assert FinalizerSettings.load(_environment(rollup_by="source,cdn")).sets == ((), ("source",), ("cdn",))
    with pytest.raises(SettingsError, match="ROLLUP_BY"):
        FinalizerSettings.load(_environment(rollup_by="viewer_id"))


def test_views_may_come_from_another_cluster_with_its_own_security() -> None:
    first = {"PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "ssl", "PLAYHEAD_KAFKA_CA_FILE": "/ca.pem"}
    alone = FinalizerSettings.load(_environment() | first)
    assert alone.views_kafka.kafka_bootstrap == alone.kafka_bootstrap
    second = FinalizerSettings.load(_environment(views_bootstrap="mirror:9092") | first).views_kafka
    assert (second.kafka_bootstrap, second.kafka_security_protocol, second.kafka_ca_file) == (
        "mirror:9092",
        "ssl",
        "/ca.pem",
    )
    own = _environment(
        views_bootstrap="mirror:9092",
        views_security_protocol="sasl_ssl",
        views_username="finalizer",
        views_password="hunter22",
    )
    third = FinalizerSettings.load(own | first).views_kafka
    assert (third.kafka_username, third.kafka_ca_file) == ("finalizer", "")
    with pytest.raises(
        SettingsError, match="FINALIZER_VIEWS_USERNAME and FINALIZER_VIEWS_PASSWORD must be set"
    ) as raised:
        FinalizerSettings.load({name: value for name, value in own.items() if not name.endswith("USERNAME")})
    assert "hunter22" not in str(raised.value)
    with pytest.raises(SettingsError, match="FINALIZER_VIEWS_BOOTSTRAP and FINALIZER_VIEWS_SECURITY_PROTOCOL"):
        FinalizerSettings.load(_environment(views_username="finalizer"))


def test_an_address_of_an_object_store_is_left_as_it_is(tmp_path: Path) -> None:
    settings = FinalizerSettings.load(_environment(warehouse_dir="s3a://bucket/warehouse/", checkpoint_dir="relative"))
    assert settings.warehouse_dir == "s3a://bucket/warehouse"
    assert settings.checkpoint_dir == str(Path("relative").absolute())


def _environment(**settings: str) -> dict[str, str]:
    needed = {"warehouse_dir": "w", "checkpoint_dir": "c", "jars_dir": "j", "postgres_dsn": "postgresql://u@db"}
    return {f"FINALIZER_{name.upper()}": value for name, value in {**needed, **settings}.items()}


def test_a_jvm_gets_one_garbage_collector_and_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    assert jvm_options().count("GC") == 1
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xss4m -XX:+UseSerialGC")
    assert "GC" not in jvm_options()
