"""The manifests let every service in by TLS with a password of its own and the rights of docs/security.md, and hold no secret."""

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deploy.kubernetes import manifests
from deploy.local.paths import ROOT
from deploy.rights import Right, documented
from services.collector.settings import CollectorSettings
from services.processor.settings import ProcessorSettings
from services.rim.process.secrets import with_secrets
from shared.settings import Settings, SettingsError
from tests.documents import all_blocks
from tests.integration.deploy.manifested import (
    SETTINGS,
    SETTINGS_OF,
    SLOTS,
    WITHOUT_KAFKA,
    containers,
    environment,
    objects,
    of_kind,
    pods,
    secret_files,
    services,
    settings,
    workloads,
)

pytestmark = pytest.mark.integration

#: Users of docs/security.md by the workload that logs in as them.
USERS = {
    "topics": "topics",
    "collector": "collector",
    "processor": "video_views",
    "finalizer": "finalizer",
    "serving": "serving",
    "dashboard": "dashboard",
}
#: What the operator makes of a cluster `playhead`: the certificate that its brokers' are checked with.
KAFKA_CA = ("playhead-cluster-ca-cert", "ca.crt")
_RESOURCES = {"topic": "topic", "group": "group", "transactionalId": "transactional id"}

#: Of overlay production-applications alone.
USERS_OF_APPLICATIONS = SLOTS | {"webhooks": "webhooks", "notifications": "notifications"}


def users_of(overlay: str) -> dict[str, str]:
    return USERS | (USERS_OF_APPLICATIONS if overlay == "production-applications" else {})


overlays = pytest.mark.parametrize("overlay", manifests.OVERLAYS)


def kubernetes_document() -> str:
    return (ROOT / "docs/kubernetes.md").read_text()


def named(user: str) -> str:
    """A user as Kubernetes can name it."""
    return user.replace("_", "-")


def common(overlay: str) -> dict[str, str]:
    (one,) = of_kind(overlay, "ConfigMap").values()
    data: dict[str, str] = one["data"]
    return data


def variables(overlay: str, container: dict[str, Any]) -> dict[str, str]:
    """The environment as the manifest has it, before anything is read from a file."""
    return (common(overlay) if "envFrom" in container else {}) | {
        one["name"]: one["value"] for one in container.get("env", []) if "value" in one
    }


def rights(user: dict[str, Any]) -> list[Right]:
    """What a KafkaUser is granted, in the words of the documented table."""
    return [
        Right(
            user["metadata"]["name"],
            _RESOURCES[acl["resource"]["type"]],
            acl["resource"]["name"] + {"literal": "", "prefix": "*"}[acl["resource"]["patternType"]],
            operation,
        )
        for acl in user["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    ]


@overlays
def test_every_service_comes_to_kafka_by_tls_with_a_password_of_its_own(overlay: str) -> None:
    assert {name for name, _ in containers(overlay)} == users_of(overlay).keys() | WITHOUT_KAFKA
    for name, container in containers(overlay):
        if name in WITHOUT_KAFKA:
            continue
        given = SETTINGS_OF.get(name, Settings).load(environment(overlay, name, container, 0))
        assert given.kafka_security_protocol == "sasl_ssl", name
        assert given.kafka_sasl_mechanism == "SCRAM-SHA-512"
        assert given.kafka_username == named(users_of(overlay)[name])
        files = secret_files(overlay, name, container)
        assert files[given.kafka_ca_file] == KAFKA_CA
        assert files[variables(overlay, container)["PLAYHEAD_KAFKA_PASSWORD_FILE"]] == (
            named(users_of(overlay)[name]),
            "password",
        )


@overlays
def test_kafkas_users_are_those_that_log_in_with_the_documented_rights_and_no_others(overlay: str) -> None:
    users = of_kind(overlay, "KafkaUser")
    assert users.keys() == {named(user) for user in users_of(overlay).values()}
    for user in users_of(overlay).values():
        one = users[named(user)]
        assert one["metadata"]["labels"]["strimzi.io/cluster"] == "playhead"
        assert one["spec"]["authentication"] == {"type": "scram-sha-512"}
        wanted = [right._replace(user=named(user)) for right in documented() if right.user == user]
        assert sorted(rights(one)) == sorted(wanted)


@pytest.fixture(scope="module")
def with_commands(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """Every object of an overlay of all applications that has taken in the operator's commands, by kind and name."""
    folder = tmp_path_factory.mktemp("overlay").resolve()
    place = Path(os.path.relpath(manifests.FOLDER.resolve(), folder))
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "playhead",
        "resources": [str(place / "overlays/production-applications")],
        "components": [str(place / "components/strimzi-operators")],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    found = yaml.safe_load_all(manifests.built(folder))
    return {(one["kind"], one["metadata"]["name"]): one for one in found if one}


def test_every_documented_user_can_be_had_on_kubernetes_with_its_rights(
    with_commands: dict[tuple[str, str], dict[str, Any]],
) -> None:
    users = {name: one for (kind, name), one in with_commands.items() if kind == "KafkaUser"}
    assert users.keys() == {named(right.user) for right in documented()}
    granted = [right for one in users.values() for right in rights(one)]
    assert sorted(granted) == sorted(right._replace(user=named(right.user)) for right in documented())
    assert {one["metadata"]["labels"]["strimzi.io/cluster"] for one in users.values()} == {"playhead"}


def test_the_operators_commands_have_a_container_of_each_of_their_users(
    with_commands: dict[tuple[str, str], dict[str, Any]],
) -> None:
    deployment = with_commands["Deployment", "commands"]
    kubernetes_validate.validate(deployment, "1.36", strict=True)
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"]["playhead.dev/kafka"] == "client"
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    common_map = pod["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"]
    data = with_commands["ConfigMap", common_map]["data"]
    of_container = {}
    for container in pod["spec"]["containers"]:
        (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == "/etc/playhead"]
        sources = volumes[mount["name"]]["projected"]["sources"]
        files = {item["path"]: source["secret"]["name"] for source in sources for item in source["secret"]["items"]}
        environ = data | {one["name"]: one["value"] for one in container["env"]}
        assert files.keys() == {
            environ.pop(f"PLAYHEAD_KAFKA_{name}_FILE").removeprefix("/etc/playhead/") for name in ("CA", "PASSWORD")
        }
        given = ProcessorSettings.load(environ | {"PLAYHEAD_KAFKA_CA_FILE": "ca", "PLAYHEAD_KAFKA_PASSWORD": "p"})
        assert given.kafka_username == files["kafka-password"]
        assert ("KafkaUser", given.kafka_username) in with_commands
        assert container["image"] == "playhead-processor:0.1.0"
        of_container[container["name"]] = given.kafka_username
    assert of_container == {"growing": "growing", "redrive": "operator", "state": "video-views"}


def test_the_document_of_growing_names_what_there_is_and_keeps_the_slots_disks(
    with_commands: dict[tuple[str, str], dict[str, Any]],
) -> None:
    blocks = [block.text for block in all_blocks() if block.document.endswith("growing.md") and block.test in __file__]
    lines = [shlex.split(line) for text in blocks for line in text.splitlines()]
    assert [line[3] for line in lines] == ["patch", "exec", "exec", "scale", "set", "scale"]
    slots = with_commands["StatefulSet", "processor"]
    for line in lines:
        assert line[:3] == ["kubectl", "-n", "playhead"]
        kind, name = next(word for word in line if "/" in word).split("/")
        assert ({"statefulset": "StatefulSet", "deployment": "Deployment"}[kind], name) in with_commands
        if line[3] == "exec":
            names = [one["name"] for one in with_commands["Deployment", name]["spec"]["template"]["spec"]["containers"]]
            assert line[line.index("-c") + 1] in names
    assert slots["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"] == "Delete"
    patch = json.loads(lines[0][-1].removeprefix("--patch="))
    slots["spec"]["persistentVolumeClaimRetentionPolicy"] |= patch["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert slots["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"] == "Retain"
    kubernetes_validate.validate(slots, "1.36", strict=True)
    assert lines[-1][-1] == f"--replicas={slots['spec']['replicas']}"


@overlays
def test_brokers_let_nobody_in_without_tls_and_a_password(overlay: str) -> None:
    kafka = of_kind(overlay, "Kafka")["playhead"]["spec"]["kafka"]
    for listener in kafka["listeners"]:
        assert (listener["tls"], listener["authentication"]) == (True, {"type": "scram-sha-512"})
    assert kafka["authorization"] == {"type": "simple"}
    assert of_kind(overlay, "Kafka")["playhead"]["spec"]["entityOperator"].keys() == {"userOperator"}
    host, port = common(overlay)["PLAYHEAD_KAFKA_BOOTSTRAP"].split(":")
    assert host == "playhead-kafka-bootstrap"
    assert [int(port)] == [listener["port"] for listener in kafka["listeners"]]
    policies = of_kind(overlay, "NetworkPolicy")
    (way,) = policies["kafka-clients"]["spec"]["egress"]
    assert way["ports"] == [{"port": int(port)}]
    # And what forbids all pods everything still lets brokers copy from each other.
    brokers = {"podSelector": {"matchLabels": {"strimzi.io/cluster": "playhead"}}}
    assert policies["kafka"]["spec"]["podSelector"] == brokers["podSelector"]
    assert {"to": [brokers]} in policies["kafka"]["spec"]["egress"]


@overlays
def test_no_secret_stands_in_a_manifest_or_an_environment(overlay: str) -> None:
    assert not of_kind(overlay, "Secret")
    for name, container in containers(overlay):
        secret = set(SETTINGS_OF.get(name, Settings).secret_variables())
        assert not secret & variables(overlay, container).keys(), name
        assert not any("secretKeyRef" in one.get("valueFrom", {}) for one in container.get("env", [])), name
        assert not any("secretRef" in one for one in container.get("envFrom", [])), name


@overlays
def test_a_pod_finds_the_secrets_that_its_services_read_and_no_others(overlay: str) -> None:
    for name, pod in pods(overlay).items():
        read, found = set(), set()
        for container in pod["containers"]:
            given = variables(overlay, container)
            read |= {value for variable, value in given.items() if variable.endswith("_FILE")}
            found |= secret_files(overlay, name, container).keys()
            (mount,) = [one for one in container["volumeMounts"] if one["name"] == "secrets"]
            assert mount["readOnly"] is True
        # The connection string names it.
        if any(value.endswith("postgres-dsn") for value in read):
            read.add("/etc/playhead/postgres-ca.crt")
        assert found == read, name
        (volume,) = [one for one in pod["volumes"] if one["name"] == "secrets"]
        assert volume["projected"]["defaultMode"] == 0o440


@overlays
def test_each_caller_of_lookups_has_a_credential_of_its_own(overlay: str) -> None:
    (slot, *_) = [container for name, container in services(overlay) if name == "processor"]
    known = settings(overlay, "processor", slot)
    assert isinstance(known, ProcessorSettings)
    tokens = {variables(overlay, slot)["PROCESSOR_LOOKUP_TOKEN_FILE"]}
    for name, scopes in (("dashboard", {"lookups", "objects", "partitions"}), ("query", {"lookups"})):
        (container,) = pods(overlay)[name]["containers"]
        path = variables(overlay, container)[f"{name.upper()}_LOOKUP_TOKEN_FILE"]
        assert secret_files(overlay, name, container)[path] == ("playhead", f"{name}-lookup-token")
        given = settings(overlay, name, container)
        holder = known.lookup_credentials_known.holder(f"Bearer {given.lookup_token.get_secret_value()}")  # type: ignore[attr-defined]
        assert holder is not None
        assert (holder.name, holder.scopes) == (name, scopes)
    assert tokens == {"/etc/playhead/slots-token"}


def test_a_secret_that_is_not_mounted_keeps_a_service_from_starting() -> None:
    name, container = services("production")[0]
    with pytest.raises(SettingsError, match="_FILE"):
        with_secrets(SETTINGS[name], variables("production", container))


@overlays
def test_metrics_are_scraped_with_the_token_that_services_want(overlay: str) -> None:
    for name, container in services(overlay):
        path = variables(overlay, container)["PLAYHEAD_ADMIN_TOKEN_FILE"]
        secret, key = secret_files(overlay, name, container)[path]
        for endpoint in of_kind(overlay, "ServiceMonitor")["processor" if name in SLOTS else name]["spec"]["endpoints"]:
            assert endpoint["authorization"] == {"credentials": {"name": secret, "key": key}}


@overlays
def test_postgres_has_to_prove_its_name(overlay: str) -> None:
    clients = [name for name, one in workloads(overlay).items() if "postgres" in str(one["spec"]["template"]["spec"])]
    more = ["notifications"] if overlay == "production-applications" else []
    assert sorted(clients) == sorted(["collector", "dashboard", "finalizer", "query", "serving", *more])
    for name in clients:
        (container,) = pods(overlay)[name]["containers"]
        assert variables(overlay, container)["PGSSLMODE"] == "verify-full"
        (string,) = re.findall(r"postgresql://\S+(?=`)", kubernetes_document())
        parameters = dict(part.split("=") for part in string.partition("?")[2].split("&"))
        assert parameters["sslmode"] == "verify-full"
        assert parameters["sslrootcert"] in secret_files(overlay, name, container)


def test_the_document_makes_every_key_that_pods_and_scrapes_want() -> None:
    made = set(re.findall(r"--from-(?:literal|file)=([\w.-]+)", kubernetes_document()))
    wanted = {
        key
        for name, container in containers("production")
        for secret, key in secret_files("production", name, container).values()
        if secret == "playhead"
    }
    assert made == wanted
    # All else that pods are given is made by the operator.
    others = {
        secret
        for name, container in containers("production")
        for secret, _ in secret_files("production", name, container).values()
    } - {"playhead"}
    assert others == {KAFKA_CA[0]} | of_kind("production", "KafkaUser").keys()


def test_the_lag_is_read_as_the_slots_own_user_by_tls() -> None:
    overlay = "production-lag-scaling"
    (trigger,) = of_kind(overlay, "ScaledObject")["processor"]["spec"]["triggers"]
    assert trigger["metadata"]["bootstrapServers"] == common(overlay)["PLAYHEAD_KAFKA_BOOTSTRAP"]
    assert (trigger["metadata"]["tls"], trigger["metadata"]["sasl"]) == ("enable", "scram_sha512")
    login = of_kind(overlay, "TriggerAuthentication")[trigger["authenticationRef"]["name"]]["spec"]
    (slot,) = [one for name, one in containers(overlay) if name == "processor"]
    (user,) = login["env"]
    assert (user["parameter"], user["containerName"]) == ("username", slot["name"])
    assert variables(overlay, slot)[user["name"]] == named(USERS["processor"])
    parts = {one["parameter"]: (one["name"], one["key"]) for one in login["secretTargetRef"]}
    assert parts == {"password": (named(USERS["processor"]), "password"), "ca": KAFKA_CA}
    assert Right("video_views", "group", "video_views*", "Read") in documented()


@overlays
def test_every_object_but_the_namespace_is_in_it(overlay: str) -> None:
    (namespace,) = of_kind(overlay, "Namespace")
    for one in objects(overlay):
        if one["kind"] != "Namespace":
            assert one["metadata"]["namespace"] == namespace, one["metadata"]["name"]


@overlays
def test_no_service_of_the_namespace_gives_a_pod_variables(overlay: str) -> None:
    # Service `collector` would give each pod COLLECTOR_SERVICE_HOST and COLLECTOR_PORT=tcp://..., which the collector refuses.
    with pytest.raises(SettingsError, match="COLLECTOR_SERVICE_HOST"):
        CollectorSettings.load({"COLLECTOR_SERVICE_HOST": "10.0.0.1"})
    for name, pod in pods(overlay).items():
        assert pod["enableServiceLinks"] is False, name
