"""The collector's settings: what they allow, and how a wrong one is reported."""

import pytest

from services.collector.intake.sender.customers import ANYBODY, Customer, Found
from services.collector.program import EXIT_SETTINGS, main
from services.collector.settings import CollectorSettings
from shared.settings import SettingsError


def test_the_defaults_are_a_collector_for_anybody() -> None:
    rules = CollectorSettings.load({}).rules("c-1", ANYBODY)
    assert (rules.collector_id, rules.customers) == ("c-1", ANYBODY)
    assert (rules.body_bytes_max, rules.batch_beacons_max) == (2 * 1024 * 1024, 3_600)


def test_settings_come_from_the_environment() -> None:
    settings = CollectorSettings.load(
        {"COLLECTOR_PORT": "80", "COLLECTOR_CUSTOMERS": "acme, other,", "PLAYHEAD_KAFKA_BOOTSTRAP": "k:1"}
    )
    assert (settings.port, settings.kafka_bootstrap) == (80, "k:1")
    assert settings.listed_customers.find("other") == Found("other", Customer())
    assert settings.listed_customers.find("stranger") == "unknown_customer"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("COLLECTOR_PORT", "http"),
        ("COLLECTOR_CUSTOMERS", "acme, no spaces"),
        ("COLLECTOR_ID", "a b"),
        ("COLLECTOR_ACK_SECONDS_MAX", "0"),
        ("COLLECTOR_QUEUE_RECORDS_MAX", "0"),
        ("COLLECTOR_PROT", "8080"),
    ],
)
def test_a_wrong_setting_is_named(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        CollectorSettings.load({variable: value})


def test_a_collector_with_wrong_settings_says_so_in_one_line_and_does_not_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLLECTOR_PORT", "http")
    assert main() == EXIT_SETTINGS
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "COLLECTOR_PORT='http'" in message


PRODUCTION = {"PLAYHEAD_TOPICS_PROFILE": "production"}


def test_production_does_not_start_open() -> None:
    customers, proxies = {"COLLECTOR_CUSTOMERS": "acme"}, {"COLLECTOR_TRUSTED_PROXIES": "10.0.0.0/8"}
    with pytest.raises(SettingsError, match="COLLECTOR_CUSTOMERS_DSN"):
        CollectorSettings.load(PRODUCTION | proxies)
    with pytest.raises(SettingsError, match="COLLECTOR_TRUSTED_PROXIES"):
        CollectorSettings.load(PRODUCTION | customers)
    assert len(CollectorSettings.load(PRODUCTION | customers | proxies).proxies) == 1
    # That nothing stands before the collector is a decision too.
    assert CollectorSettings.load(PRODUCTION | customers | {"COLLECTOR_TRUSTED_PROXIES": "none"}).proxies == []
