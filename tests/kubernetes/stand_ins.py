"""What a cluster has before the manifests come, beside published kinds: nodes, classes of disks, Strimzi's kinds."""

from typing import Any, Final

NODES: Final = 12
_ZONES: Final = ("a", "b", "c")
#: Strimzi's kinds that the manifests use, with their plurals. Their schemas are in no package and not here: any content is
#: taken, so nothing is shown of what these objects say.
_KINDS: Final = {"Kafka": "kafkas", "KafkaNodePool": "kafkanodepools", "KafkaUser": "kafkausers"}
_GROUP: Final = "kafka.strimzi.io"


def all_of_them() -> list[dict[str, Any]]:
    """Every object."""
    return [*kinds(), *nodes(), *disks()]


def kinds() -> list[dict[str, Any]]:
    """Strimzi's kinds, with any content."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{_GROUP}"},
            "spec": {
                "group": _GROUP,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                "versions": [
                    {"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
                ],
            },
        }
        for kind, plural in _KINDS.items()
    ]


def nodes() -> list[dict[str, Any]]:
    """Nodes in three zones, more than the largest overlay has slots."""
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{number}",
                "labels": {
                    "kubernetes.io/hostname": f"node-{number}",
                    "topology.kubernetes.io/zone": _ZONES[number % len(_ZONES)],
                },
            },
            "status": {"allocatable": room, "capacity": room},
        }
        for number in range(NODES)
    ]


def disks() -> list[dict[str, Any]]:
    """Class `ssd`, which the manifests name, and the one of claims that name none. Their volumes are empty folders."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": annotations},
            "provisioner": "kubernetes.io/host-path",
            "reclaimPolicy": "Delete",
            # As classes of local disks do: the volume is made where the pod goes.
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        for name, annotations in (("ssd", {}), ("standard", default))
    ]
