"""One cluster for all tests, and each overlay applied to it as docs/kubernetes.md says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from deploy.kubernetes import manifests
from deploy.kubernetes.cluster import PROGRAMS, Cluster, missing_programs
from tests.kubernetes import stand_ins

#: Keys of the Secret that docs/kubernetes.md has made.
KEYS = (
    "admin-token",
    "slots-token",
    "lookup-credentials",
    "dashboard-lookup-token",
    "query-lookup-token",
    "webhooks-url",
    "webhooks-secret",
    "notifications-postgres-dsn",
    "query-postgres-dsn",
    "collector-postgres-dsn",
    "finalizer-postgres-dsn",
    "serving-postgres-dsn",
    "dashboard-postgres-dsn",
    "postgres-ca.crt",
)
#: A namespace with this quota takes no pod whose containers do not say all of it. The limits are larger than any overlay's sums.
QUOTA = {"requests.cpu": "1k", "requests.memory": "4Ti", "limits.cpu": "1k", "limits.memory": "4Ti"}
_UNITS = {"m": Decimal("0.001"), "k": Decimal(1_000), "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def number(quantity: str) -> Decimal:
    """A quantity of Kubernetes as a number: cores or bytes."""
    digits = quantity.rstrip("mkKMGTi")
    return Decimal(digits) * _UNITS.get(quantity.removeprefix(digits), 1)


@dataclass(frozen=True)
class Applied:
    """An overlay in its namespace on the cluster."""

    cluster: Cluster
    overlay: str
    objects: list[dict[str, Any]]

    @property
    def namespace(self) -> str:
        (name,) = [one["metadata"]["name"] for one in self.objects if one["kind"] == "Namespace"]
        return str(name)

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl("--namespace", self.namespace, *arguments)

    def get(self, *arguments: str) -> dict[str, Any]:
        return self.cluster.get("--namespace", self.namespace, *arguments)

    def items(self, kind: str, name: str = "") -> dict[str, dict[str, Any]]:
        """The objects of a kind, or those that belong to workload `name`, by their own names."""
        chosen = ["--selector", f"app.kubernetes.io/name={name}"] if name else []
        return {one["metadata"]["name"]: one for one in self.get(kind, *chosen)["items"]}

    def declared(self, *kinds: str) -> dict[str, dict[str, Any]]:
        """The manifests of some kinds, by name."""
        return {one["metadata"]["name"]: one for one in self.objects if one["kind"] in kinds}

    def wanted(self, name: str) -> int:
        """How many pods a workload has, without a load and without KEDA."""
        scalers = self.declared("HorizontalPodAutoscaler")
        if name in scalers:
            return int(scalers[name]["spec"]["minReplicas"])
        spec = self.declared("Deployment", "StatefulSet")[name]["spec"]
        return int(spec.get("replicas") or 1)

    def wait_until_rolled_out(self) -> None:
        """Until every workload has all its pods, of its newest template."""
        for name, one in self.declared("Deployment", "StatefulSet").items():
            workload = f"{one['kind'].lower()}/{name}"
            self.cluster.wait_until(
                lambda workload=workload, name=name: self.get(workload)["spec"]["replicas"] == self.wanted(name),  # type: ignore[misc]
                f"{self.wanted(name)} pods of {workload} to be wanted",
            )
            self.kubectl("rollout", "status", workload, "--timeout=280s")
        self.kubectl("wait", "--for=condition=complete", "job/topics", "--timeout=280s")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if missing := missing_programs():
        pytest.fail(f"{', '.join(missing)} not there: `make kubernetes-test` builds it")
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        # Too long for `apply`, which keeps what it was given in an annotation.
        cluster.kubectl("create", "--filename", str(PROGRAMS / "kinds.yaml"))
        cluster.apply(stand_ins.all_of_them())
        cluster.kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=280s")
        cluster.kubectl("wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=280s")
        yield cluster


@contextmanager
def applied_overlay(cluster: Cluster, overlay: str) -> Iterator[Applied]:
    """The overlay, as docs/kubernetes.md says, in a namespace with a quota, when all of it runs. Nothing of it is left then."""
    applied = Applied(cluster, overlay, manifests.build(overlay))
    cluster.kubectl("create", "namespace", applied.namespace)
    try:
        applied.kubectl("create", "secret", "generic", "playhead", *(f"--from-literal={key}=x" for key in KEYS))
        hard = ",".join(f"{name}={most}" for name, most in QUOTA.items())
        applied.kubectl("create", "quota", "all", f"--hard={hard}")
        cluster.kubectl("apply", "--kustomize", str(manifests.FOLDER / "overlays" / overlay))
        applied.wait_until_rolled_out()
        yield applied
    finally:
        cluster.kubectl("delete", "namespace", applied.namespace, "--timeout=280s")
        cluster.wait_until(lambda: not cluster.get("persistentvolumes")["items"], "volumes to be gone")


@pytest.fixture(scope="module", params=manifests.OVERLAYS)
def applied(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Applied]:
    with applied_overlay(cluster, request.param) as applied:
        yield applied


@pytest.fixture(scope="module")
def staging(cluster: Cluster) -> Iterator[Applied]:
    """Overlay staging, for tests that change what runs there and leave it running."""
    with applied_overlay(cluster, "staging") as applied:
        yield applied
