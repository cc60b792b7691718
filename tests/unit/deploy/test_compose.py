"""deploy/compose.yaml: every service starts with settings that it takes, after what it needs, without a right, and watched."""

import re
from collections import Counter
from typing import Any

import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from deploy.database import USERS, DatabaseSettings
from deploy.demo.shortened import FINISH_MS, TRIGGER_SECONDS
from deploy.images import environment, third_party
from deploy.images.stack import PORTS as OF_THIS_MACHINE
from deploy.images.stack import Stack
from deploy.local.paths import ROOT
from deploy.observability.dashboards import SERVING, SOURCE
from services.collector.settings import CollectorSettings
from services.dashboard.settings import DashboardSettings
from services.finalizer.settings import FinalizerSettings
from services.processor.applications.video_views.settings import VideoViewsSettings
from services.processor.settings import ProcessorSettings
from services.query.settings import QuerySettings
from services.rim.admin.probe import PORTS
from services.serving.settings import ServingSettings
from shared.settings import Settings
from shared.topics import PROFILES

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())
ALL: dict[str, dict[str, Any]] = COMPOSE["services"]
SETTINGS: dict[str, type[Settings]] = {
    "collector": CollectorSettings,
    "processor": ProcessorSettings,
    "finalizer": FinalizerSettings,
    "serving": ServingSettings,
    "query": QuerySettings,
    "dashboard": DashboardSettings,
}
#: What deploy/Dockerfile sets.
OF_IMAGE = {"FINALIZER_JARS_DIR": "/opt/playhead/jars", "PROCESSOR_STATE_DIR": "/state"}
WITHOUT_KAFKA = {"query"}
BROKERS = ("kafka-1", "kafka-2", "kafka-3")


def ours() -> dict[str, dict[str, Any]]:
    return {name: one for name, one in ALL.items() if one["image"].startswith("playhead-")}


def service_of(one: dict[str, Any]) -> str:
    return str(one["image"].removeprefix("playhead-").split(":")[0])


SECRETS = environment.made()


def environ_of(name: str) -> dict[str, str]:
    variables = {
        key: re.sub(r"\$\{\w+:-(\w+)\}", r"\1", re.sub(r"\$\{(\w+):\?\}", lambda found: SECRETS[found[1]], str(value)))
        for key, value in ALL[name]["environment"].items()
    }
    return OF_IMAGE | variables


def settings(name: str) -> Settings:
    return SETTINGS[service_of(ALL[name])].load(environ_of(name))


def working() -> list[str]:
    return [name for name in ours() if name not in {"topics", "database"}]


def test_it_is_what_an_installation_without_a_single_point_has() -> None:
    numbers = Counter(service_of(ALL[name]) for name in working())
    assert numbers == {"collector": 2, "processor": 8, "finalizer": 1, "serving": 1, "query": 1, "dashboard": 1}
    profile = PROFILES["trial"]
    for number, name in enumerate(BROKERS, 1):
        environ = ALL[name]["environment"]
        assert environ["KAFKA_NODE_ID"] == number
        (port,) = ALL[name]["ports"]
        of_host, inside = port.rsplit(":", 1)
        assert environ["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{name}:9092,HOST://{of_host}"
        assert f"HOST://:{inside}," in environ["KAFKA_LISTENERS"]
        assert environ["KAFKA_DEFAULT_REPLICATION_FACTOR"] == profile.replication_factor
        assert environ["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == profile.min_insync_replicas
        assert environ["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


@pytest.mark.parametrize("name", working())
def test_a_service_takes_its_settings(name: str) -> None:
    given = settings(name)
    assert given.profile == PROFILES["trial"]
    assert given.kafka_bootstrap.split(",") == [f"{broker}:9092" for broker in BROKERS]


def test_every_slot_has_a_standby_on_the_other_processor() -> None:
    replicas: dict[tuple[str, int], str] = {}
    for name in working():
        given = settings(name)
        if isinstance(given, ProcessorSettings):
            assert given.standbys == 1
            assert ALL[name]["hostname"] == name
            (volume,) = ALL[name]["volumes"]
            replicas[given.slot, given.replica] = volume.split(":")[0]
    slots = {slot for slot, _ in replicas}
    assert slots == {"processor-0/0", "processor-0/1", "processor-1/0", "processor-1/1"}
    for slot in slots:
        assert replicas[slot, 0] == slot.split("/")[0]
        assert {replicas[slot, 0], replicas[slot, 1]} == {"processor-0", "processor-1"}


def test_nothing_of_ours_has_a_right_or_writes_where_it_need_not() -> None:
    for name, one in ours().items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"]
        assert one["stop_grace_period"] == "120s"
        # Spark unpacks a library there and runs it; nobody else may.
        assert one["tmpfs"] == (["/tmp:exec"] if name == "finalizer" else ["/tmp"]), name


def test_everything_waits_until_what_it_needs_is_healthy() -> None:
    for name in working():
        waits = {other: how["condition"] for other, how in ALL[name]["depends_on"].items()}
        if service_of(ALL[name]) not in WITHOUT_KAFKA:
            assert waits["topics"] == "service_completed_successfully"
            assert all(waits[broker] == "service_healthy" for broker in BROKERS)
        wants_postgres = any(variable.endswith("_DSN") for variable in ALL[name]["environment"])
        assert (waits.get("postgres") == "service_healthy") == wants_postgres, name
        assert (waits.get("database") == "service_completed_successfully") == wants_postgres, name
    for name in (*BROKERS, "postgres"):
        assert ALL[name]["healthcheck"]["test"]


def test_no_secret_stands_in_it_and_nothing_listens_but_here() -> None:
    used = set()
    for name, one in ALL.items():
        for variable, value in one.get("environment", {}).items():
            if re.search(r"DSN|TOKEN|PASSWORD|CREDENTIALS", variable):
                assert re.search(r"\$\{\w+:\?\}", str(value)), (name, variable)
            used |= set(re.findall(r"\$\{(\w+):\?\}", str(value)))
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", []))
    assert used == SECRETS.keys(), "the command makes what the file wants, and nothing else"


def test_each_caller_of_lookups_has_a_token_of_its_own() -> None:
    slots = settings("processor-0-slot-0")
    assert isinstance(slots, ProcessorSettings)
    own = slots.lookup_token
    assert own is not None
    tokens = [own.get_secret_value()]
    for name, scopes in (("dashboard", {"lookups", "partitions"}), ("query", {"lookups"})):
        token = settings(name).lookup_token.get_secret_value()  # type: ignore[attr-defined]
        holder = slots.lookup_credentials_known.holder(f"Bearer {token}")
        assert holder is not None
        assert (holder.name, holder.scopes) == (name, scopes)
        tokens.append(token)
    assert len(set(tokens)) == 3


def test_each_service_has_a_user_of_its_own_in_postgres() -> None:
    users = {}
    for name in working():
        for variable, value in environ_of(name).items():
            if variable.endswith("_DSN"):
                users[name] = conninfo_to_dict(value)["user"]
                assert conninfo_to_dict(value)["password"] == SECRETS[f"{service_of(ALL[name]).upper()}_PASSWORD"]
    of_rows = {name: name for name in ("finalizer", "serving", "query", "dashboard")}
    assert users == of_rows | {"collector-0": "collector", "collector-1": "collector"}
    made = DatabaseSettings.load(environ_of("database"))
    with_password = {user for user in USERS if getattr(made, f"{user}_password") is not None}
    assert with_password == {*users.values(), "grafana"}
    assert made.grafana_password is not None
    (serving,) = [one for one in grafana_sources() if one["uid"] == SERVING.uid]
    given = environ_of("grafana")["GRAFANA_POSTGRES_PASSWORD"]
    assert (serving["user"], serving["secureJsonData"]) == ("grafana", {"password": "$GRAFANA_POSTGRES_PASSWORD"})
    assert made.grafana_password.get_secret_value() == given != environ_of("grafana")["GF_SECURITY_ADMIN_PASSWORD"]
    # The superuser is Postgres' own, and that of the command which makes the others.
    superuser = {name for name, one in ALL.items() if "${POSTGRES_PASSWORD:?}" in str(one.get("environment"))}
    assert superuser == {"postgres", "database"}


def test_a_key_that_is_made_on_the_page_is_one_that_collectors_read() -> None:
    written = conninfo_to_dict(environ_of("dashboard")["DASHBOARD_POSTGRES_DSN"])
    made = conninfo_to_dict(environ_of("database")["DATABASE_DSN"])
    for name in ("collector-0", "collector-1"):
        given = settings(name)
        assert isinstance(given, CollectorSettings)
        assert given.customers_dsn is not None
        read = conninfo_to_dict(given.customers_dsn.get_secret_value())
        for part in ("host", "dbname"):
            assert read[part] == written[part] == made[part]


def test_links_that_the_page_makes_lead_to_the_port_of_this_machine() -> None:
    (mapped,) = ALL["dashboard"]["ports"]
    of_machine = mapped.removeprefix("127.0.0.1:").rpartition(":")[0]
    assert ALL["dashboard"]["environment"]["DASHBOARD_PUBLIC_URL"] == f"http://localhost:{of_machine}"
    given = settings("dashboard")
    assert isinstance(given, DashboardSettings)
    assert (given.page_url, given.is_secure) == ("http://localhost:8090", False)


def test_every_container_has_a_limit_of_memory_and_of_processes() -> None:
    for name, one in ALL.items():
        assert re.fullmatch(r"\d+[mg]", one["mem_limit"]), name
        assert 0 < one["pids_limit"] <= 2048, name
    # docs/processor.md, Memory: all limits full at once.
    assert ALL["processor-0-slot-0"]["mem_limit"] == "2560m"


def test_nobody_sees_grafana_or_metrics_without_a_login() -> None:
    grafana = ALL["grafana"]["environment"]
    assert grafana["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert grafana["GF_USERS_ALLOW_SIGN_UP"] == "false"
    assert grafana["GF_SECURITY_ADMIN_PASSWORD"] == "${GRAFANA_PASSWORD:?}"
    for name in working():
        token = settings(name).admin_token
        assert token is not None
        assert token.get_secret_value() == SECRETS["ADMIN_TOKEN"]
    config = yaml.safe_load((ROOT / "deploy/observability/compose/prometheus.yml").read_text())
    (file,) = {job["authorization"]["credentials_file"] for job in config["scrape_configs"]}
    prometheus = ALL["prometheus"]
    assert prometheus["environment"] == {"ADMIN_TOKEN": "${ADMIN_TOKEN:?}"}
    assert f'"$$ADMIN_TOKEN" > {file};' in prometheus["entrypoint"][2]


def test_images_of_others_are_by_digest() -> None:
    theirs = [one["image"] for one in ALL.values() if not one["image"].startswith("playhead-")]
    for image in theirs:
        assert re.fullmatch(r"\$\{\w+_IMAGE:-[\w./-]+:[\w.]+@sha256:[0-9a-f]{64}\}", image), image
    assert third_party.stand_in_variables() == {
        "KAFKA_IMAGE": "apache/kafka:4.3.1",
        "POSTGRES_IMAGE": "postgres:17",
        "PROMETHEUS_IMAGE": "prom/prometheus:v3.5.0",
    }


def test_prometheus_scrapes_every_service_under_the_job_that_rules_know() -> None:
    config = yaml.safe_load((ROOT / "deploy/observability/compose/prometheus.yml").read_text())
    scraped = {
        (job["job_name"], target)
        for job in config["scrape_configs"]
        for static in job["static_configs"]
        for target in static["targets"]
    }
    assert scraped == {
        (f"playhead-{service}", f"{name}:{PORTS[service]}") for name in working() for service in [service_of(ALL[name])]
    }
    assert [(one["uid"], one["type"]) for one in grafana_sources()] == [
        (one.uid, one.type_val) for one in (SOURCE, SERVING)
    ]


def grafana_sources() -> list[dict[str, Any]]:
    """The data sources that Grafana is provisioned with."""
    found = yaml.safe_load((ROOT / "deploy/observability/compose/grafana.yaml").read_text())
    return list(found["datasources"])


def test_every_port_of_this_machine_is_a_variable_that_the_stack_knows() -> None:
    mapped = [port for one in ALL.values() for port in one.get("ports", [])]
    ports = {found[1]: int(found[2]) for port in mapped if (found := re.search(r"\$\{(\w+):-(\d+)\}:\d+$", port))}
    assert len(ports) == len(mapped)
    assert ports == OF_THIS_MACHINE


def test_the_demos_shorter_settings_are_ones_that_the_services_take() -> None:
    overridden: dict[str, dict[str, str]] = {
        name: one["environment"] for name, one in Stack.overrides()["services"].items()
    }
    assert overridden.keys() == {name for name in working() if service_of(ALL[name]) in ("processor", "finalizer")}
    for name, environ in overridden.items():
        if service_of(ALL[name]) == "processor":
            rules = VideoViewsSettings.load(environ)
            assert {field: getattr(rules, field) for field in FINISH_MS} == FINISH_MS
        else:
            of_demo = FinalizerSettings.load(environ_of(name) | environ)
            assert {field: getattr(of_demo, field) for field in TRIGGER_SECONDS} == TRIGGER_SECONDS


def test_every_third_partys_image_that_can_be_had_has_a_stand_in() -> None:
    stages = re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "deploy/images/stand_ins/Dockerfile").read_text(), re.M)
    assert list(third_party.STAGES.values()) == stages
    theirs = {name for name, one in ALL.items() if not one["image"].startswith("playhead-")}
    stood_in = {third_party.image_of(service) for service in third_party.STAGES}
    assert {third_party.image_of(name) for name in theirs} - stood_in == {"grafana/grafana:11.6.0"}
