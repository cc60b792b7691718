"""The operator's work on a real control plane, as the runbook says: upgrade, scale, replace a disk."""

import datetime as dt
from typing import Any

import pytest

from tests.kubernetes.conftest import Applied

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

_NEW = "0.2.0"


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def created(pod: dict[str, Any]) -> dt.datetime:
    return moment(pod["metadata"]["creationTimestamp"])


def ready_since(pod: dict[str, Any]) -> dt.datetime:
    (ready,) = [each for each in pod["status"]["conditions"] if each["type"] == "Ready"]
    assert ready["status"] == "True"
    return moment(ready["lastTransitionTime"])


def volumes(applied: Applied) -> dict[str, tuple[str, str]]:
    """Which claim and which volume each slot's name has; no volume: an empty name."""
    return {
        name: (claim["metadata"]["uid"], claim["spec"].get("volumeName", ""))
        for name, claim in applied.items("persistentvolumeclaims").items()
        if name.startswith("state-processor-")
    }


def set_image(applied: Applied, workload: str, *containers: str) -> None:
    """A new version of a workload; returns when it has taken the place of the old one."""
    image = f"playhead-{workload.partition('/')[2]}:{_NEW}"
    applied.kubectl("set", "image", workload, *(f"{container}={image}" for container in containers))
    applied.kubectl("rollout", "status", workload, "--timeout=280s")


def images(applied: Applied, name: str) -> set[str]:
    return {
        container["image"].rpartition(":")[2]
        for pod in applied.items("pods", name).values()
        for container in pod["spec"]["containers"]
    }


def scalings(applied: Applied, name: str) -> list[str]:
    """How a Deployment has scaled its sets of pods up and down, in order."""
    events = applied.get("events", "--field-selector", f"involvedObject.name={name},reason=ScalingReplicaSet")["items"]
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [event["message"].removeprefix("Scaled ").partition(" ")[0] for event in events]


def test_slots_are_replaced_from_the_last_to_the_first_and_keep_their_volumes(staging: Applied) -> None:
    before, disks = staging.items("pods", "processor"), volumes(staging)
    assert (before.keys(), len(disks)) == ({f"processor-{index}" for index in range(3)}, 3)

    set_image(staging, "statefulset/processor", "slot", "standby")

    after = staging.items("pods", "processor")
    assert after.keys() == before.keys()
    assert images(staging, "processor") == {_NEW}
    for name, pod in after.items():
        assert pod["metadata"]["uid"] != before[name]["metadata"]["uid"]
    assert volumes(staging) == disks
    # A slot goes once the one after it was ready for so long that its partitions are back.
    waits = dt.timedelta(seconds=staging.declared("StatefulSet")["processor"]["spec"]["minReadySeconds"])
    third, second, first = (after[f"processor-{index}"] for index in (2, 1, 0))
    for earlier, later in ((third, second), (second, first)):
        assert created(later) >= ready_since(earlier) + waits


def test_a_new_version_of_topics_is_a_new_job(staging: Applied) -> None:
    job = staging.declared("Job")["topics"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["image"] = f"playhead-processor:{_NEW}"
    staging.kubectl("delete", "job", "topics", "--ignore-not-found")
    staging.cluster.apply([job])
    staging.kubectl("wait", "--for=condition=complete", "job/topics", "--timeout=280s")


@pytest.mark.parametrize("name", ["collector", "finalizer", "serving", "dashboard"])
def test_a_new_version_of_a_deployment_takes_its_place(staging: Applied, name: str) -> None:
    set_image(staging, f"deployment/{name}", name)
    staging.cluster.wait_until(lambda: images(staging, name) == {_NEW}, f"no old pod of {name} to be left")
    assert len(staging.items("pods", name)) == staging.wanted(name)


def test_a_finalizer_comes_when_the_one_before_it_is_gone(staging: Applied) -> None:
    before = len(scalings(staging, "finalizer"))
    staging.kubectl("rollout", "restart", "deployment/finalizer")
    staging.kubectl("rollout", "status", "deployment/finalizer", "--timeout=280s")
    staging.cluster.wait_until(lambda: len(scalings(staging, "finalizer")) == before + 2, "both events to be listed")
    assert scalings(staging, "finalizer")[before:] == ["down", "up"]


def test_a_slots_disk_is_replaced_and_the_others_keep_theirs(staging: Applied) -> None:
    disks = volumes(staging)
    staging.kubectl("delete", "persistentvolumeclaim", "state-processor-2", "--wait=false")
    staging.kubectl("delete", "pod", "processor-2")

    def has_another() -> bool:
        claim, volume = volumes(staging).get("state-processor-2", ("", ""))
        return bool(volume) and claim != disks["state-processor-2"][0]

    staging.cluster.wait_until(has_another, "another volume for processor-2")
    staging.kubectl("wait", "--for=condition=Ready", "pod/processor-2", "--timeout=280s")
    changed = {name for name, disk in volumes(staging).items() if disk != disks[name]}
    assert changed == {"state-processor-2"}


def test_a_slot_that_goes_for_good_takes_its_disk_with_it(staging: Applied) -> None:
    disks = volumes(staging)
    staging.kubectl("scale", "statefulset/processor", "--replicas=2")
    staging.cluster.wait_until(lambda: len(volumes(staging)) == 2, "the third slot's claim to be gone")
    assert volumes(staging).items() <= disks.items()
    staging.kubectl("scale", "statefulset/processor", "--replicas=3")
    staging.kubectl("rollout", "status", "statefulset/processor", "--timeout=280s")
    assert volumes(staging).keys() == disks.keys()
