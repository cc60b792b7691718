"""What an overlay of deploy/kubernetes comes to: its objects, and the settings that its services make of their environments."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from deploy.kubernetes import manifests
from services.collector.settings import CollectorSettings
from services.dashboard.settings import DashboardSettings
from services.finalizer.settings import FinalizerSettings
from services.notifications.settings import NotificationsSettings
from services.processor.settings import ProcessorSettings
from services.query.settings import QuerySettings
from services.rim.http.credentials import entry
from services.serving.settings import ServingSettings
from services.webhooks.settings import WebhooksSettings
from shared.settings import Settings

SETTINGS: dict[str, type[Settings]] = {
    "collector": CollectorSettings,
    "processor": ProcessorSettings,
    "finalizer": FinalizerSettings,
    "serving": ServingSettings,
    "dashboard": DashboardSettings,
    "query": QuerySettings,
}
#: Of overlay production-applications alone.
APPLICATIONS = ("traces", "api_schemas", "api_baselines", "recordings", "users", "alerts")
SLOTS = {f"processor-{application.replace('_', '-')}": application for application in APPLICATIONS}
OF_APPLICATIONS: dict[str, type[Settings]] = {
    **dict.fromkeys(SLOTS, ProcessorSettings),
    "webhooks": WebhooksSettings,
    "notifications": NotificationsSettings,
}
SETTINGS_OF = SETTINGS | OF_APPLICATIONS
#: Reads nothing of Kafka.
WITHOUT_KAFKA = frozenset({"query"})
#: What the image itself sets (deploy/Dockerfile).
OF_IMAGE = {"finalizer": {"FINALIZER_JARS_DIR": "/opt/playhead/jars"}}
#: Keys of the Secret that are not just any text.
SECRETS = {
    "dashboard-lookup-token": "a token of the dashboard alone",
    "webhooks-url": "https://receiver.example.com/hook",
    "query-lookup-token": "a token of the questions alone",
    "lookup-credentials": " ".join(
        (
            entry("dashboard", ["lookups", "objects", "partitions"], "a token of the dashboard alone"),
            entry("query", ["lookups"], "a token of the questions alone"),
        )
    ),
}
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@cache
def objects(overlay: str) -> list[dict[str, Any]]:
    return manifests.build(overlay)


def of_kind(overlay: str, *kinds: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects(overlay) if one["kind"] in kinds}


def workloads(overlay: str) -> dict[str, dict[str, Any]]:
    return of_kind(overlay, "Deployment", "StatefulSet", "Job")


def pods(overlay: str) -> dict[str, dict[str, Any]]:
    return {name: one["spec"]["template"]["spec"] for name, one in workloads(overlay).items()}


def containers(overlay: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in pods(overlay).items():
        yield from ((name, container) for container in pod["containers"] + pod.get("initContainers", []))


def bytes_of(quantity: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(Ki|Mi|Gi|Ti)", quantity).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit]


def secret_files(overlay: str, name: str, container: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The files that a container of workload `name` finds secrets in, with the Secret and key of each."""
    volumes = {volume["name"]: volume for volume in pods(overlay)[name].get("volumes", [])}
    return {
        f"{mount['mountPath']}/{item['path']}": (source["secret"]["name"], item["key"])
        for mount in container.get("volumeMounts", [])
        for source in volumes.get(mount["name"], {}).get("projected", {}).get("sources", [])
        for item in source["secret"]["items"]
    }


def environment(overlay: str, name: str, container: dict[str, Any], index: int) -> dict[str, str]:
    """What the process finds, in pod `index` of its workload."""
    common = next(
        one for one in of_kind(overlay, "ConfigMap").values() if one["metadata"]["name"].startswith("playhead-")
    )
    if name not in WITHOUT_KAFKA:
        assert container["envFrom"] == [{"configMapRef": {"name": common["metadata"]["name"]}}]
    fields = {
        "metadata.name": f"{name}-{index}",
        "metadata.namespace": "playhead",
        "metadata.labels['apps.kubernetes.io/pod-index']": str(index),
    }
    environ: dict[str, str] = (dict(common["data"]) if "envFrom" in container else {}) | OF_IMAGE.get(name, {})
    for variable in container.get("env", []):
        if "valueFrom" in variable:
            value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        else:
            value = re.sub(r"\$\((\w+)\)", lambda match: environ[match[1]], variable["value"])
        environ[variable["name"]] = value
    mounted = secret_files(overlay, name, container)
    for variable in SETTINGS_OF.get(name, Settings).secret_variables():
        if path := environ.pop(f"{variable}_FILE", None):
            key = mounted[path][1]
            environ[variable] = SECRETS.get(key, "postgresql://u:p@db/x" if key.endswith("dsn") else "t" * 32)
    # What the shell of a standby works out; the finalizer's are its command.
    if "args" in container and name != "finalizer":
        assert container["args"] == [
            'PROCESSOR_SLOT="$SERVICE-$(( (POD_INDEX + 1) % SLOTS ))/0" exec python -m services.processor'
        ]
        environ["PROCESSOR_SLOT"] = f"{environ['SERVICE']}-{(int(environ['POD_INDEX']) + 1) % int(environ['SLOTS'])}/0"
    return environ


def settings(overlay: str, name: str, container: dict[str, Any], index: int = 0) -> Settings:
    """The settings that the service makes of it: it refuses what it does not know."""
    # Where a slot's own name is: for its shell, and no setting.
    return SETTINGS_OF[name].load(environment(overlay, name, container, index))


def services(overlay: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, container) for name, container in containers(overlay) if name in SETTINGS_OF]


def all_of(overlay: str) -> dict[str, type[Settings]]:
    """The services of an overlay."""
    return SETTINGS_OF if overlay == "production-applications" else SETTINGS
