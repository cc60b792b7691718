"""Settings are refused with words that help."""

import re
from pathlib import Path
from typing import ClassVar

import pydantic
import pytest

from deploy.local.paths import ROOT
from services.processor.catalogue import APPLICATIONS
from shared import topics
from shared.settings import NO_SETTINGS, Settings, SettingsError


class Example(Settings):
    PREFIX: ClassVar[str] = "EXAMPLE_"

    port: int = pydantic.Field(8080, ge=1, le=65535, description="a TCP port")
    password: pydantic.SecretStr = pydantic.SecretStr("")


def test_values_come_from_the_environment() -> None:
    settings = Example.load({"EXAMPLE_PORT": "9000", "PLAYHEAD_KAFKA_BOOTSTRAP": "kafka:9092", "PATH": "/bin"})
    assert settings.port == 9000
    assert settings.kafka_bootstrap == "kafka:9092"


def test_a_wrong_value_is_named_with_what_is_allowed() -> None:
    with pytest.raises(SettingsError, match=r"EXAMPLE_PORT='99999': .*less than or equal to 65535.*a TCP port"):
        Example.load({"EXAMPLE_PORT": "99999"})


def test_an_unknown_variable_of_the_service_is_a_typo() -> None:
    with pytest.raises(SettingsError, match=r"EXAMPLE_PROT is not a setting of this service.*EXAMPLE_PORT"):
        Example.load({"EXAMPLE_PROT": "1"})


def test_an_unknown_variable_of_all_services_is_a_typo_in_each() -> None:
    # Passed over, the service would speak plaintext.
    for kind in (Example, Settings):
        with pytest.raises(SettingsError, match=r"PLAYHEAD_KAFKA_SECURTY_PROTOCOL is not a setting of this service"):
            kind.load({"PLAYHEAD_KAFKA_SECURTY_PROTOCOL": "sasl_ssl"})


@pytest.mark.parametrize(
    "name",
    [
        *sorted(NO_SETTINGS),
        "PLAYHEAD_KAFKA_BOOTSTRAP_SERVICE_HOST",
        "PLAYHEAD_KAFKA_BOOTSTRAP_SERVICE_PORT_TCP_CLIENTS",
        "PLAYHEAD_KAFKA_BOOTSTRAP_PORT",
        "PLAYHEAD_KAFKA_BOOTSTRAP_PORT_9093_TCP",
        "PLAYHEAD_KAFKA_BOOTSTRAP_PORT_9093_TCP_ADDR",
    ],
)
def test_what_images_commands_and_kubernetes_set_is_no_typo(name: str) -> None:
    assert Example.load({name: "x"}) == Example()


def test_every_common_variable_of_the_project_is_a_setting_or_known_to_be_none() -> None:
    settings = {Settings.variable(field) for field in Settings.model_fields}
    files = {f"{name}_FILE" for name in Settings.secret_variables()}
    sources = (
        path
        for top in ("services", "shared", "deploy", "tests", "bench", "loadtest")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".py", ".yaml", ".c", ".sh"} or path.name == "Dockerfile"
    )
    of_settings = {ROOT / "shared/settings.py", Path(__file__)}
    named = {
        name
        for path in sources
        if path not in of_settings
        for name in re.findall(r"PLAYHEAD_[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    assert named - settings - files == NO_SETTINGS


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Example.load({"EXAMPLE_PORT": "no", "PLAYHEAD_TOPICS_PROFILE": "huge"})
    assert "EXAMPLE_PORT" in str(caught.value)
    assert "PLAYHEAD_TOPICS_PROFILE='huge'" in str(caught.value)


def test_a_secret_is_never_in_the_message() -> None:
    class Strict(Settings):
        PREFIX: ClassVar[str] = "STRICT_"
        password: pydantic.SecretStr = pydantic.Field(pydantic.SecretStr(""), max_length=3)

    with pytest.raises(SettingsError) as caught:
        Strict.load({"STRICT_PASSWORD": "hunter2"})
    assert "hunter2" not in str(caught.value)
    assert "STRICT_PASSWORD" in str(caught.value)


def test_a_missing_variable_is_named_without_the_values_of_others() -> None:
    class Strict(Settings):
        PREFIX: ClassVar[str] = "STRICT_"
        password: pydantic.SecretStr
        folder: str = pydantic.Field(description="where it lies")

    with pytest.raises(SettingsError) as caught:
        Strict.load({"STRICT_PASSWORD": "hunter2"})
    assert "STRICT_FOLDER must be set (where it lies)" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_application_may_have_its_state_under_another_id_and_its_changelog_is_named_by_it() -> None:
    settings = Settings.load({"PLAYHEAD_APPLICATION_IDS": "video_views=video_views-b users=users-2"})
    assert [settings.application_id(name) for name in ("video_views", "traces")] == ["video_views-b", "traces"]
    named = [
        settings.named(topic).name for topic in (topics.VIDEO_VIEWS_CHANGELOG, topics.BEACONS, topics.VIEWS_PROTOBUF)
    ]
    assert named == ["video_views-b.changelog", "beacons", "views.protobuf"]
    assert Settings().named(topics.VIDEO_VIEWS_CHANGELOG) is topics.VIDEO_VIEWS_CHANGELOG
    application = APPLICATIONS["video_views"]({}).under(settings.application_id("video_views"))
    assert (application.name, application.id) == ("video_views", "video_views-b")
    assert application.changelog == settings.named(topics.VIDEO_VIEWS_CHANGELOG)


@pytest.mark.parametrize(
    "ids", ["video_views", "video_views=traces", "video_views=video_views", "a=a-b, b=b-c", "a=a-b "]
)
def test_an_id_that_may_be_another_applications_is_refused(ids: str) -> None:
    with pytest.raises(SettingsError, match="PLAYHEAD_APPLICATION_IDS"):
        Settings.load({"PLAYHEAD_APPLICATION_IDS": ids})
