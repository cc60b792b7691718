"""The demo's processes: their settings are ones that the services know, and its output lists what it changed."""

import subprocess
from pathlib import Path

import pytest

from deploy.demo import addresses, customers
from deploy.demo.services import DemoServices
from deploy.demo.shortened import FINISH_MS, shortened
from deploy.demo.viewers import rrweb
from deploy.demo.viewers.clients_doc import COLLECTOR_NAME, lines_to_paste, snippets
from deploy.demo.viewers.crowd import Players
from deploy.local.supervisor import Service
from loadtest.story import story_of
from services.collector.settings import CollectorSettings
from services.dashboard.settings import DashboardSettings
from services.finalizer.settings import FinalizerSettings
from services.processor.applications.video_views.settings import VideoViewsSettings
from services.processor.settings import ProcessorSettings
from services.query.settings import QuerySettings
from services.serving.settings import ServingSettings
from shared.schemas.span import DEFAULT_CUSTOMER
from shared.settings import Settings


@pytest.fixture
def services(tmp_path: Path) -> DemoServices:
    return DemoServices(tmp_path, bootstrap="127.0.0.1:19092", postgres_dsn="host=/sockets dbname=playhead")


def test_every_service_accepts_its_settings(services: DemoServices) -> None:
    expected: list[tuple[Service, type[Settings]]] = [
        *((service, CollectorSettings) for service in services.collectors()),
        *((service, ProcessorSettings) for service in services.processors()),
        (services.finalizer(), FinalizerSettings),
        (services.serving(), ServingSettings),
        (services.query(), QuerySettings),
        (services.dashboard(), DashboardSettings),
    ]
    for service, kind in expected:
        assert kind.load(service.env).kafka_bootstrap == "127.0.0.1:19092"
    for service in services.processors():
        assert VideoViewsSettings.load(service.env).finish_clean_ms == FINISH_MS["finish_clean_ms"]


#: By service, the settings that say where it listens; without one it would be on all interfaces. Any other one is a slot.
LISTENERS = {
    "collector": ("COLLECTOR_HOST", "COLLECTOR_ADMIN_HOST"),
    "dashboard": ("DASHBOARD_HOST", "DASHBOARD_ADMIN_HOST"),
    "finalizer": ("FINALIZER_ADMIN_HOST",),
    "notifications": ("NOTIFICATIONS_ADMIN_HOST",),
    "query": ("QUERY_HOST", "QUERY_ADMIN_HOST"),
    "serving": ("SERVING_ADMIN_HOST",),
}


def test_every_service_listens_on_this_machine_alone(services: DemoServices) -> None:
    of_rows = [services.finalizer(), services.serving(), services.query(), services.dashboard()]
    slots = [*services.processors(), *services.slots()]
    for service in [*of_rows, *slots, *services.collectors(), *services.alerting()]:
        listeners = LISTENERS.get(service.name.partition("-")[0], ("PROCESSOR_LOOKUP_HOST", "PROCESSOR_ADMIN_HOST"))
        assert [service.env.get(name) for name in listeners] == ["127.0.0.1"] * len(listeners), service.name


def test_a_key_that_is_made_on_the_page_is_one_that_collectors_read(services: DemoServices) -> None:
    written = services.dashboard().env["DASHBOARD_POSTGRES_DSN"]
    assert {service.env["COLLECTOR_CUSTOMERS_DSN"] for service in services.collectors()} == {written}


def test_customers_of_the_players_and_of_the_documents_lines_are_listed() -> None:
    heard = {player.customer_id for player in (story_of(7, number, 60).player for number in range(200))}
    assert heard <= set(customers.LISTED)
    assert {"acme", rrweb.CUSTOMER, DEFAULT_CUSTOMER} <= set(customers.LISTED)


def test_no_two_processes_share_a_port_but_the_collectors_their_own(services: DemoServices) -> None:
    of_rows = [services.finalizer(), services.serving(), services.query(), services.dashboard()]
    all_services = [*services.collectors(), *services.processors(), *of_rows]
    ports = [service.admin_port for service in all_services]

    assert len(set(ports)) == len(ports)
    assert {service.env["COLLECTOR_PORT"] for service in services.collectors()} == {str(services.collector_port)}


def test_silence_is_longer_than_the_ten_seconds_between_a_players_batches(services: DemoServices) -> None:
    settings = VideoViewsSettings.load(services.processors()[0].env)

    assert settings.finish_silent_ms > 10_000
    assert settings.finish_paused_ms > settings.finish_silent_ms


def test_what_the_demo_shortens_is_printed_with_its_default() -> None:
    settings = {setting.variable: (setting.value, setting.default) for setting in shortened()}

    assert settings["VIDEO_VIEWS_FINISH_PAUSED_MS"] == ("20000", "3600000")
    assert settings["FINALIZER_TRIGGER_SECONDS"] == ("10", "30")
    assert settings["FINALIZER_ROLLUP_SECONDS"] == ("45", "60")
    assert all(value != default for value, default in settings.values())


def test_mux_embed_is_given_a_host_for_which_it_speaks_plain_http(services: DemoServices) -> None:
    assert f"beaconCollectionDomain: 'localhost:{services.collector_port}'" in snippets(services.collector_port)
    # Without TLS, and nothing left of the document's name.
    assert f"url: 'http://localhost:{services.collector_port}/cmcd/acme'" in snippets(services.collector_port)
    assert COLLECTOR_NAME not in snippets(services.collector_port)
    with pytest.raises(LookupError, match="no js lines for Quadrophonic"):
        lines_to_paste("Quadrophonic")


def test_the_players_get_where_to_post_and_where_to_write(services: DemoServices) -> None:
    service = Players(views=10, seconds=60, seed=3).service(services.collector_url, services.truth)

    assert service.ends
    assert service.arguments[:2] == ("-m", "loadtest.players")
    assert set(zip(service.arguments[2::2], service.arguments[3::2], strict=True)) == {
        ("--url", services.collector_url),
        ("--views", "10"),
        ("--seconds", "60"),
        ("--seed", "3"),
        ("--truth", str(services.truth)),
    }


def test_every_address_that_a_document_asks_for_is_written_and_only_its_owner_may_read_it(
    services: DemoServices, tmp_path: Path
) -> None:
    found = services.addresses()
    file = addresses.write(tmp_path, found)

    assert file.stat().st_mode & 0o777 == 0o600
    script = f". {file} && env"
    output = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env={}).stdout
    assert {f"{name}={value}" for name, value in found.items()} <= set(output.splitlines())
    listed = addresses.listed(found, file)
    assert all(value in listed for value in found.values())
