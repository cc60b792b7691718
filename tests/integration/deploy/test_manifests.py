"""The manifests are what Kubernetes publishes as its schema, what services' settings take, and no more than they need."""

from typing import get_args

import kubernetes_validate
import pytest

from deploy.kubernetes import manifests
from deploy.local.paths import ROOT
from services.collector.settings import CollectorSettings
from services.dashboard.settings import DashboardSettings
from services.finalizer.settings import FinalizerSettings
from services.processor.catalogue import APPLICATIONS as CATALOGUE
from services.processor.settings import ProcessorSettings
from services.query.settings import QuerySettings
from shared.metrics import ServiceName
from shared.topics import BEACONS, PROFILES
from tests.integration.deploy.manifested import (
    OF_APPLICATIONS,
    SLOTS,
    WITHOUT_KAFKA,
    all_of,
    bytes_of,
    containers,
    objects,
    of_kind,
    pods,
    services,
    settings,
    workloads,
)

pytestmark = pytest.mark.integration

SCHEMA = "1.36"
#: Shapes of operators, which Kubernetes has no schema of.
CUSTOM = frozenset({"Kafka", "KafkaNodePool", "KafkaUser", "ServiceMonitor", "ScaledObject", "TriggerAuthentication"})
overlays = pytest.mark.parametrize("overlay", manifests.OVERLAYS)


@overlays
def test_every_object_is_of_the_published_schema(overlay: str) -> None:
    for one in objects(overlay):
        if one["kind"] not in CUSTOM:
            kubernetes_validate.validate(one, SCHEMA, strict=True)
    assert workloads(overlay).keys() == {"topics", *all_of(overlay)}


def test_every_service_of_this_project_has_a_manifest() -> None:
    overlay = "production-applications"
    images = {container["image"].partition(":")[0] for _, container in containers(overlay)}
    assert images == {f"playhead-{service}" for service in get_args(ServiceName)}
    programs = {path.parent.name for path in (ROOT / "services").glob("*/__main__.py")}
    assert programs == set(get_args(ServiceName))


def test_an_object_with_a_misspelt_field_is_refused() -> None:
    job = manifests.build("staging")
    broken = next(one for one in job if one["kind"] == "Job")
    broken["spec"]["backOffLimit"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, SCHEMA, strict=True)


@overlays
def test_nothing_runs_as_root_or_writes_where_it_need_not(overlay: str) -> None:
    for pod in pods(overlay).values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] >= 10_000
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    for _, container in containers(overlay):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert (
        of_kind(overlay, "Namespace").popitem()[1]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        == "restricted"
    )


@overlays
def test_everything_has_requests_and_limits(overlay: str) -> None:
    for name, container in containers(overlay):
        resources = container["resources"]
        for part in ("requests", "limits"):
            assert resources[part].keys() == {"cpu", "memory"}, name
        assert bytes_of(resources["requests"]["memory"]) <= bytes_of(resources["limits"]["memory"])


@overlays
def test_memory_limits_are_above_what_settings_allow(overlay: str) -> None:
    for name, container in services(overlay):
        limit = bytes_of(container["resources"]["limits"]["memory"])
        given = settings(overlay, name, container)
        if isinstance(given, ProcessorSettings):
            # docs/processor.md, Memory: all limits full at once.
            assert limit > 1.8 * 2**30
        if isinstance(given, CollectorSettings):
            assert limit > 2 * (given.in_flight_bytes_max + given.queue_kbytes_max * 1024)
        if isinstance(given, FinalizerSettings):
            heap = int(given.driver_memory[:-1]) * {"g": 2**30, "m": 2**20}[given.driver_memory[-1]]
            assert limit >= 2 * heap


@overlays
def test_every_environment_is_one_that_the_service_starts_with(overlay: str) -> None:
    for name, container in services(overlay):
        given = settings(overlay, name, container)
        assert given.topics_profile == "production"
        assert given.log_format == "json"


@overlays
def test_probes_ask_the_admin_port_of_the_settings(overlay: str) -> None:
    for name, container in services(overlay):
        given = settings(overlay, name, container)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for kind, path in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
            probe = container[kind]["httpGet"]
            assert probe["path"] == path
            assert ports[probe["port"]] == given.admin_port  # type: ignore[attr-defined]
        # A process that is slow to start is not killed for it.
        assert container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] >= 120
        assert "lifecycle" not in container, "services drain by themselves: no preStop, and no sleep in it"


@overlays
def test_ports_of_services_are_ports_of_containers(overlay: str) -> None:
    of_workload: dict[str, dict[str, int]] = {}
    for name, container in services(overlay):
        given = settings(overlay, name, container)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports.items() >= {
            (f"{'standby-' if container['name'] == 'standby' else ''}admin", given.admin_port),  # type: ignore[attr-defined]
        }
        if isinstance(given, CollectorSettings | DashboardSettings | QuerySettings):
            assert ports["http"] == given.port
        if isinstance(given, ProcessorSettings):
            assert given.lookup_port in ports.values()
            assert given.lookup_url.endswith(f":{given.lookup_port}")
        of_workload.setdefault(name, {}).update(ports)
    for service in of_kind(overlay, "Service").values():
        selector = dict(service["spec"]["selector"])
        if "playhead.dev/application" in selector:
            assert workloads(overlay)[service["metadata"]["name"]]["spec"]["selector"]["matchLabels"] == selector
            continue
        (name,) = selector.values()
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in of_workload[name], service["metadata"]["name"]


@overlays
def test_a_pod_has_the_time_that_its_service_takes_to_end(overlay: str) -> None:
    for name, container in services(overlay):
        given = settings(overlay, name, container)
        grace = pods(overlay)[name]["terminationGracePeriodSeconds"]
        if isinstance(given, ProcessorSettings):
            assert grace == 120
            assert grace * 1000 > given.commit_ms_max + given.revoke_ms_max
        if isinstance(given, CollectorSettings):
            # What is under way, then the producer.
            assert grace > given.drain_notice_seconds + 2 * given.drain_seconds_max
        if isinstance(given, FinalizerSettings | DashboardSettings):
            assert grace > given.drain_seconds_max


@overlays
def test_every_slot_has_its_own_name_and_a_standby_in_another_pod(overlay: str) -> None:
    processor = workloads(overlay)["processor"]
    spec = processor["spec"]
    assert processor["kind"] == "StatefulSet"
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"]["type"] == "RollingUpdate"
    by_name = {container["name"]: container for name, container in services(overlay) if name == "processor"}
    number = spec.get("replicas") or 3
    homes = [settings(overlay, "processor", by_name["slot"], index) for index in range(number)]
    slots = [home.slot for home in homes if isinstance(home, ProcessorSettings)]
    assert slots == [f"processor-{index}/0" for index in range(number)]
    hosts = [home.lookup_url for home in homes if isinstance(home, ProcessorSettings)]
    assert hosts == [f"http://processor-{index}.processor.playhead.svc:9103" for index in range(number)]
    standbys = homes[0].standbys if isinstance(homes[0], ProcessorSettings) else 0
    if overlay == "production-lag-scaling":
        assert (standbys, by_name.keys()) == (0, {"slot"})
        return
    assert standbys == 1
    beside = [settings(overlay, "processor", by_name["standby"], index) for index in range(number)]
    for index, one in enumerate(beside):
        assert isinstance(one, ProcessorSettings)
        assert (one.slot != slots[index], one.replica, one.standbys) == (True, 1, 1)
        assert one.lookup_token == homes[0].lookup_token  # type: ignore[attr-defined]
    assert sorted(one.slot for one in beside) == sorted(slots)  # type: ignore[attr-defined]


@overlays
def test_state_lies_on_a_disk_of_the_pod(overlay: str) -> None:
    (claim,) = workloads(overlay)["processor"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "ssd"
    for name, container in services(overlay):
        given = settings(overlay, name, container)
        mounts = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        for folder in ("state_dir", "spool_dir", "warehouse_dir", "checkpoint_dir"):
            place = str(getattr(given, folder, ""))
            assert not place or any(place.startswith(mount) for mount in mounts), (name, folder)


def test_a_spool_lies_on_a_disk_that_outlives_its_pod() -> None:
    collector = workloads("production-spool")["collector"]
    assert collector["kind"] == "StatefulSet"
    spec = collector["spec"]
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    (claim,) = spec["volumeClaimTemplates"]
    given = settings("production-spool", "collector", spec["template"]["spec"]["containers"][0])
    assert isinstance(given, CollectorSettings)
    assert given.spool_dir.startswith("/spool/")
    assert given.spool_bytes_max < bytes_of(claim["spec"]["resources"]["requests"]["storage"])
    scaled = of_kind("production-spool", "HorizontalPodAutoscaler")["collector"]["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) == ("StatefulSet", "collector")
    assert spec["serviceName"] in of_kind("production-spool", "Service")


@overlays
def test_the_finalizer_has_one_driver_at_a_time(overlay: str) -> None:
    spec = workloads(overlay)["finalizer"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


@overlays
def test_pods_that_share_a_disk_of_one_node_follow_each_other_whichever_starts_first(overlay: str) -> None:
    sharers: dict[str, list[str]] = {}
    for name, pod in pods(overlay).items():
        for volume in pod.get("volumes", []):
            if "persistentVolumeClaim" in volume:
                sharers.setdefault(volume["persistentVolumeClaim"]["claimName"], []).append(name)
    claims = of_kind(overlay, "PersistentVolumeClaim")
    shared = {
        claim: names
        for claim, names in sharers.items()
        if len(names) > 1 and "ReadWriteMany" not in claims[claim]["spec"]["accessModes"]
    }
    assert shared == {"warehouse": ["finalizer", "query"]}
    for names in shared.values():
        for name in names:
            (term,) = pods(overlay)[name]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert term["topologyKey"] == "kubernetes.io/hostname"
            # Its own labels are among those that it looks for: else the first pod waits for one that waits for it.
            for other in names:
                labels = workloads(overlay)[other]["spec"]["template"]["metadata"]["labels"]
                assert term["labelSelector"]["matchLabels"].items() <= labels.items(), (name, other)


@overlays
def test_what_is_not_named_is_forbidden_on_the_network(overlay: str) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    nothing = policies["nothing"]["spec"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name, one in workloads(overlay).items():
        labels = one["spec"]["template"]["metadata"]["labels"]
        assert (labels.get("playhead.dev/kafka") == "client") == (name not in WITHOUT_KAFKA), name
        wants_postgres = any(
            str(v.get("value")).endswith("postgres-dsn")
            for _, c in containers(overlay)
            if _ == name
            for v in c.get("env", [])
        )
        assert ("playhead.dev/postgres" in labels) == wants_postgres, name
    open_to_all = [
        name
        for name, policy in policies.items()
        if any("from" not in rule for rule in policy["spec"].get("ingress", []))
    ]
    assert sorted(open_to_all) == ["page", "players"]
    # What goes out has a named end: pods, or a network that is not everything.
    for name, policy in policies.items():
        for rule in policy["spec"].get("egress", []):
            assert rule["to"], name
            for end in rule["to"]:
                assert end.keys() <= {"podSelector", "namespaceSelector", "ipBlock"}, name
                block = end.get("ipBlock", {})
                # The Internet is a place only without every network of one's own.
                assert block.get("cidr") != "0.0.0.0/0" or {"10.0.0.0/8", "169.254.0.0/16"} <= set(block["except"]), (
                    name
                )


def test_players_and_people_come_in_by_tls_alone() -> None:
    overlay = "production-ingress"
    found = of_kind(overlay, "Ingress")
    assert found.keys() == {"players", "page"}
    services_of = of_kind(overlay, "Service")
    for one in found.values():
        (rule,), (tls,) = one["spec"]["rules"], one["spec"]["tls"]
        assert tls["hosts"] == [rule["host"]]
        assert tls["secretName"]
        (path,) = rule["http"]["paths"]
        named = path["backend"]["service"]
        ports = {port["name"] for port in services_of[named["name"]]["spec"]["ports"]}
        assert named["port"]["name"] in ports
    (container,) = pods(overlay)["dashboard"]["containers"]
    given = settings(overlay, "dashboard", container)
    assert isinstance(given, DashboardSettings)
    assert given.public_url == f"https://{found['page']['spec']['rules'][0]['host']}"
    assert given.is_secure
    assert given.proxies


@overlays
def test_disruptions_and_scaling_leave_enough(overlay: str) -> None:
    budgets = of_kind(overlay, "PodDisruptionBudget")
    assert budgets.keys() == all_of(overlay).keys()
    assert {budget["spec"]["maxUnavailable"] for budget in budgets.values()} == {1}
    scaler = of_kind(overlay, "HorizontalPodAutoscaler")["collector"]["spec"]
    assert scaler["minReplicas"] >= 2
    assert scaler["metrics"][0]["resource"]["name"] == "cpu"
    assert "replicas" not in workloads(overlay)["collector"]["spec"], "apply would undo what the autoscaler chose"


@overlays
def test_every_service_is_scraped_under_the_job_that_rules_know(overlay: str) -> None:
    monitors = of_kind(overlay, "ServiceMonitor")
    # One of all slots: their Services have the name in common.
    assert monitors.keys() == all_of(overlay).keys() - SLOTS.keys()
    by_label = {
        one["metadata"]["labels"]["app.kubernetes.io/name"]: one
        for one in of_kind(overlay, "Service").values()
        if "app.kubernetes.io/name" in one["metadata"].get("labels", {})
    }
    for name, monitor in monitors.items():
        assert monitor["spec"]["selector"]["matchLabels"] == {"app.kubernetes.io/name": name}
        ports = {port["name"] for port in by_label[name]["spec"]["ports"]}
        endpoints = monitor["spec"]["endpoints"]
        assert {endpoint["port"] for endpoint in endpoints} == {port for port in ports if port.endswith("admin")}
        for endpoint in endpoints:
            assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": f"playhead-{name}"}]


@overlays
def test_kafka_is_as_the_topics_need_it(overlay: str) -> None:
    profile = PROFILES["production"]
    kafka = of_kind(overlay, "Kafka")["playhead"]["spec"]["kafka"]
    brokers = of_kind(overlay, "KafkaNodePool")["brokers"]["spec"]["replicas"]
    assert brokers >= profile.replication_factor
    config = kafka["config"]
    assert config["auto.create.topics.enable"] is False
    assert config["ssl.enabled.protocols"] == "TLSv1.2,TLSv1.3"
    assert config["unclean.leader.election.enable"] is False
    for name in ("default", "offsets.topic", "transaction.state.log"):
        assert config[f"{name}.replication.factor"] == profile.replication_factor
    assert config["transaction.state.log.min.isr"] == config["min.insync.replicas"] == profile.min_insync_replicas


def test_slots_follow_the_lag_of_the_applications_group() -> None:
    scaled = of_kind("production-lag-scaling", "ScaledObject")["processor"]["spec"]
    assert scaled["scaleTargetRef"]["kind"] == "StatefulSet"
    assert "replicas" not in workloads("production-lag-scaling")["processor"]["spec"]
    assert scaled["maxReplicaCount"] <= BEACONS.partitions(PROFILES["production"])
    (trigger,) = scaled["triggers"]
    assert trigger["metadata"]["consumerGroup"] == "video_views"
    assert trigger["metadata"]["topic"] == BEACONS.name


def test_every_application_has_slots_of_its_own_by_the_one_description() -> None:
    overlay = "production-applications"
    views = workloads(overlay)["processor"]["spec"]
    for name, application in SLOTS.items():
        spec = workloads(overlay)[name]["spec"]
        assert spec["serviceName"] == name
        by_name = {container["name"]: container for one, container in services(overlay) if one == name}
        for kind in ("slot", "standby"):
            given = settings(overlay, name, by_name[kind], 1)
            assert isinstance(given, ProcessorSettings)
            assert (given.application, given.standbys, given.replica) == (application, 1, int(kind == "standby"))
            assert given.slot == f"{name}-{1 if kind == 'slot' else 2}/0"
            port = 9103 if kind == "slot" else 9113
            assert given.lookup_url == f"http://{name}-1.{name}.playhead.svc:{port}"
            assert given.kafka_username == application.replace("_", "-")
            assert {k: v for k, v in by_name[kind].items() if k not in {"env", "volumeMounts"}} == {
                k: v
                for container in views["template"]["spec"]["containers"]
                if container["name"] == kind
                for k, v in container.items()
                if k not in {"env", "volumeMounts"}
            } | {"resources": by_name[kind]["resources"]}
        # No Service, budget or set takes pods of another application for its own.
        label = {"playhead.dev/application": application.replace("_", "-")}
        assert label.items() <= spec["selector"]["matchLabels"].items()
        assert label.items() <= of_kind(overlay, "PodDisruptionBudget")[name]["spec"]["selector"]["matchLabels"].items()
    assert sorted([*SLOTS.values(), "video_views"]) == sorted(CATALOGUE)
    assert OF_APPLICATIONS.keys() == {*SLOTS, "webhooks", "notifications"}
    (mounts,) = {
        mount["mountPath"]
        for container in pods(overlay)["processor-recordings"]["containers"]
        for mount in container["volumeMounts"]
        if mount["name"] == "objects"
    }
    assert mounts == "/objects"


def test_the_finalizer_deletes_recordings_where_their_slots_keep_them() -> None:
    overlay = "production-applications"
    places = set()
    for name in ("processor-recordings", "finalizer"):
        claims = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in pods(overlay)[name]["volumes"]
            if "persistentVolumeClaim" in volume
        }
        for container in pods(overlay)[name]["containers"]:
            given = settings(overlay, name, container)
            where = given.objects  # type: ignore[attr-defined]
            (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == where]
            assert not mount.get("readOnly")
            places.add((where, claims[mount["name"]]))
    ((_, claim),) = places
    assert of_kind(overlay, "PersistentVolumeClaim")[claim]["spec"]["accessModes"] == ["ReadWriteMany"]
