"""A real control plane takes every overlay as it is, and all of it comes up: pods, volumes, budgets, within a quota."""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest

from deploy.kubernetes.cluster import KubectlFailed
from tests.kubernetes.conftest import QUOTA, Applied, number

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]


def dry_run(applied: Applied, one: dict[str, Any]) -> str:
    """What the server would do."""
    return applied.cluster.apply([one], "--dry-run=server")


def pod_of(applied: Applied, name: str) -> dict[str, Any]:
    """A pod as workload `name` makes it."""
    template = deepcopy(applied.declared("Deployment", "StatefulSet")[name]["spec"]["template"])
    metadata = {"name": "one", "namespace": applied.namespace, "labels": template["metadata"]["labels"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def wrong_type(deployment: dict[str, Any]) -> None:
    deployment["spec"]["replicas"] = "three"


def misspelt(deployment: dict[str, Any]) -> None:
    deployment["spec"]["template"]["spec"]["terminationGraceSeconds"] = 5


def unknown_port(deployment: dict[str, Any]) -> None:
    deployment["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] = "No Port"


def test_every_object_is_there_and_no_field_was_dropped(applied: Applied) -> None:
    for one, kept in zip(applied.objects, applied.cluster.kept(applied.objects), strict=True):
        assert (kept["kind"], kept["metadata"]["name"]) == (one["kind"], one["metadata"]["name"])
        assert dropped(one.get("spec", {}), kept.get("spec", {})) == [], one["metadata"]["name"]


def dropped(wanted: Any, kept: Any, path: str = "spec") -> list[str]:
    """Where `kept` lacks what was wanted. Quantities may be written in another way, and are not compared."""
    if isinstance(wanted, dict):
        missing = [f"{path}.{key}" for key in wanted if not isinstance(kept, dict) or key not in kept]
        return missing + [
            each for key in wanted if not missing for each in dropped(wanted[key], kept[key], f"{path}.{key}")
        ]
    if isinstance(wanted, list):
        if not isinstance(kept, list) or len(wanted) != len(kept):
            return [path]
        return [
            each
            for index, (one, other) in enumerate(zip(wanted, kept, strict=True))
            for each in dropped(one, other, f"{path}[{index}]")
        ]
    return []


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (wrong_type, "unrecognized type: int32"),
        (misspelt, "unknown field"),
        (unknown_port, "readinessProbe.httpGet.port: Invalid value"),
    ],
)
def test_what_is_wrong_is_refused(applied: Applied, spoil: Callable[[dict[str, Any]], None], expected: str) -> None:
    deployment = deepcopy(applied.declared("Deployment")["dashboard"])
    assert "(server dry run)" in dry_run(applied, deployment)
    spoil(deployment)
    with pytest.raises(KubectlFailed, match="dashboard") as refused:
        dry_run(applied, deployment)
    assert expected in str(refused.value)


def test_what_is_misspelt_for_an_operator_is_refused(applied: Applied) -> None:
    monitor = deepcopy(applied.declared("ServiceMonitor")["dashboard"])
    assert "(server dry run)" in dry_run(applied, monitor)
    monitor["spec"]["endpoints"][0]["intervall"] = "15s"
    with pytest.raises(KubectlFailed, match="unknown field"):
        dry_run(applied, monitor)


def test_a_pod_that_may_do_more_or_take_more_than_it_says_is_refused(applied: Applied) -> None:
    pod = pod_of(applied, "dashboard")
    assert "(server dry run)" in dry_run(applied, pod)
    rooted, unlimited = deepcopy(pod), deepcopy(pod)
    rooted["spec"]["containers"][0]["securityContext"]["capabilities"] = {"add": ["SYS_ADMIN"]}
    with pytest.raises(KubectlFailed, match='violates PodSecurity "restricted'):
        dry_run(applied, rooted)
    del unlimited["spec"]["containers"][0]["resources"]["limits"]
    with pytest.raises(KubectlFailed, match=r"must specify limits\.cpu"):
        dry_run(applied, unlimited)


def test_every_workload_has_its_pods_ready(applied: Applied) -> None:
    for name, one in applied.declared("Deployment", "StatefulSet").items():
        pods = applied.items("pods", name)
        assert len(pods) == applied.wanted(name)
        for pod in pods.values():
            ready = {each["type"]: each["status"] for each in pod["status"]["conditions"]}["Ready"]
            assert (pod["status"]["phase"], ready) == ("Running", "True")
        if one["kind"] == "StatefulSet":
            assert pods.keys() == {f"{name}-{index}" for index in range(len(pods))}
    # No two slots with their copies on one node.
    nodes = Counter(pod["spec"]["nodeName"] for pod in applied.items("pods", "processor").values())
    assert set(nodes.values()) == {1}


def test_every_claim_has_a_volume_of_its_own_on_its_class(applied: Applied) -> None:
    wanted = dict.fromkeys(applied.declared("PersistentVolumeClaim"), "standard")
    for name, one in applied.declared("StatefulSet").items():
        for template in one["spec"]["volumeClaimTemplates"]:
            wanted |= {
                f"{template['metadata']['name']}-{name}-{index}": template["spec"]["storageClassName"]
                for index in range(applied.wanted(name))
            }
    claims = applied.items("persistentvolumeclaims")
    assert {name: claim["spec"]["storageClassName"] for name, claim in claims.items()} == wanted
    assert {claim["status"]["phase"] for claim in claims.values()} == {"Bound"}
    volumes = {claim["spec"]["volumeName"] for claim in claims.values()}
    assert len(volumes) == len(claims)
    # And each pod has the claim of its own name.
    for name, one in applied.declared("StatefulSet").items():
        for template in one["spec"]["volumeClaimTemplates"]:
            for pod in applied.items("pods", name).values():
                mounted = {
                    volume["name"]: volume["persistentVolumeClaim"]["claimName"]
                    for volume in pod["spec"]["volumes"]
                    if "persistentVolumeClaim" in volume
                }
                claim = template["metadata"]["name"]
                assert mounted[claim] == f"{claim}-{pod['metadata']['name']}"


def test_collectors_that_spool_are_pods_with_a_disk(applied: Applied) -> None:
    spools = applied.overlay == "production-spool"
    assert ("collector" in applied.items("statefulsets")) == spools
    assert ("collector" in applied.items("deployments")) != spools
    assert ("spool-collector-0" in applied.items("persistentvolumeclaims")) == spools


def test_one_pod_of_each_kind_may_be_away(applied: Applied) -> None:
    budgets = applied.declared("PodDisruptionBudget")

    def counted() -> bool:
        return all(
            (budget["status"].get("disruptionsAllowed"), budget["status"].get("expectedPods"))
            == (1, applied.wanted(name))
            for name, budget in applied.items("poddisruptionbudgets").items()
        )

    assert applied.items("poddisruptionbudgets").keys() == budgets.keys()
    applied.cluster.wait_until(counted, "one pod of each budget to be free to go")


def test_what_pods_ask_for_is_what_the_quota_counts(applied: Applied) -> None:
    """A quota takes no pod with a container without a number; their sum is what an installation needs."""
    wanted: Counter[str] = Counter()
    for name, one in applied.declared("Deployment", "StatefulSet").items():
        for container in one["spec"]["template"]["spec"]["containers"]:
            for part, amounts in container["resources"].items():
                for resource, amount in amounts.items():
                    wanted[f"{part}.{resource}"] += number(amount) * applied.wanted(name)  # type: ignore[assignment]

    def used() -> dict[str, Decimal]:
        return {name: number(amount) for name, amount in applied.get("quota", "all")["status"]["used"].items()}

    assert wanted.keys() == QUOTA.keys()
    applied.cluster.wait_until(lambda: used() == wanted, f"the quota to count {dict(wanted)}")


def test_services_find_their_pods(applied: Applied) -> None:
    for name, service in applied.items("services").items():
        (workload,) = service["spec"]["selector"].values()
        slices = applied.get("endpointslices", "--selector", f"kubernetes.io/service-name={name}")["items"]
        found = {
            (endpoint["targetRef"]["name"], endpoint["conditions"]["ready"])
            for each in slices
            for endpoint in each.get("endpoints") or []
        }
        assert found == {(pod, True) for pod in applied.items("pods", workload)}, name
