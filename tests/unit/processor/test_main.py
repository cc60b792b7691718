"""The processor runs the application that its settings name."""

from collections.abc import Mapping
from typing import get_args

import pytest

from services.processor import __main__ as processor
from services.processor.engine.application.application import Application
from services.processor.settings import ApplicationName
from shared.settings import SettingsError


def test_every_application_that_can_be_named_is_there_under_its_name() -> None:
    assert set(processor.APPLICATIONS) == set(get_args(ApplicationName))
    assert {name: make({}).name for name, make in processor.APPLICATIONS.items()} == {
        name: name for name in processor.APPLICATIONS
    }


def test_the_application_that_the_settings_name_is_made_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(environ: Mapping[str, str]) -> Application:
        raise SettingsError(f"made for {environ['PROCESSOR_SLOT']}")

    monkeypatch.setenv("PROCESSOR_APPLICATION", "video_views")
    monkeypatch.setenv("PROCESSOR_SLOT", "test/0")
    monkeypatch.setitem(processor.APPLICATIONS, "video_views", refuse)

    assert processor.main() == 2
    assert capsys.readouterr().err == "processor: made for test/0\n"


def test_an_application_that_nobody_knows_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROCESSOR_APPLICATION", "nonsense")

    assert processor.main() == 2
    assert "PROCESSOR_APPLICATION" in capsys.readouterr().err
