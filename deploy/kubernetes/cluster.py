"""A Kubernetes control plane on this machine with simulated nodes: `make kubernetes-test` applies the manifests to it.

etcd, API server, controller manager and scheduler are the published ones, built from their modules (control_plane/main.go). Nodes
are kwok's: it reports every pod as running and ready, and runs no pod. So all decisions of the control plane are real: what is
accepted, where a pod goes, which volume it gets, which pod is replaced next. No image is pulled, no probe is called, no packet is
filtered.
"""

import json
import os
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from deploy.local.paths import LOCAL
from deploy.local.ports import free_port
from deploy.local.process import Child, ProcessDied, wait_until

#: What `deploy/local/setup.sh kubernetes` builds.
PROGRAMS: Final = LOCAL / "control-plane"
START_SECONDS_MAX: Final = 300.0
STOP_SECONDS_MAX: Final = 60.0
ANSWER_SECONDS_MAX: Final = 300.0
_HOST: Final = "127.0.0.1"
_KEY_BITS: Final = 2_048
#: Each look is a process of its own.
_POLL_SECONDS: Final = 1.0


class KubectlFailed(RuntimeError):
    """kubectl ended with an error; the text is the command and its output."""


class Cluster:
    """A control plane on loopback, with all its files in `folder`, which must be this user's alone. It has no nodes yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._kubeconfig = self._folder / "kubeconfig"
        self._certificates = self._folder / "certificates"
        self._etcd_port, self._api_port = free_port(), free_port()
        self._etcd = self._child("etcd", *self._etcd_arguments())
        self._api = self._child("kube-apiserver", *self._api_arguments())
        #: What works through the API server.
        self._workers = [
            self._child("kube-controller-manager", *self._manager_arguments()),
            self._child("kube-scheduler", *self._worker_arguments()),
            Child("kwok", [str(PROGRAMS / "kwok"), *self._kwok_arguments()], log_file=self._folder / "kwok.log"),
        ]

    def start(self) -> None:
        """Starts all programs and waits until the API server answers. Raises `ProcessDied` or `DeadlinePassed`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._certificates.mkdir(exist_ok=True)
        key = rsa.generate_private_key(public_exponent=65_537, key_size=_KEY_BITS)
        self._key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        token = secrets.token_urlsafe()
        self._token_file.write_text(f'{token},tester,tester,"system:masters"\n')
        self._kubeconfig.write_text(self._access(token))
        self._etcd.start()
        self._api.start()
        self._api.wait_until(self._is_ready, START_SECONDS_MAX, "being ready")
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        """Stops all programs, the API server before its etcd: it writes until its end."""
        for child in (*reversed(self._workers), self._api, self._etcd):
            child.stop(STOP_SECONDS_MAX)

    def kubectl(self, *arguments: str, given: str | None = None, seconds: float = ANSWER_SECONDS_MAX) -> str:
        """Runs kubectl, with `given` on its standard input; what it printed. Raises `KubectlFailed`."""
        done = subprocess.run(
            [str(PROGRAMS / "control_plane"), "kubectl", *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            # kubectl keeps what it has learned of the server below its home.
            env=dict(os.environ) | {"KUBECONFIG": str(self._kubeconfig), "HOME": str(self._folder)},
        )
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, objects: list[dict[str, Any]], *arguments: str) -> str:
        """`kubectl apply` of objects. Raises `KubectlFailed`."""
        return self.kubectl("apply", "--filename=-", *arguments, given=yaml.safe_dump_all(objects))

    def get(self, *arguments: str, given: str | None = None) -> dict[str, Any]:
        """What `kubectl get` shows: an object, or a list with `items`. Raises `KubectlFailed`."""
        shown: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output=json", given=given))
        return shown

    def kept(self, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the server has of these objects, in their order. Raises `KubectlFailed` when one is not there."""
        found: list[dict[str, Any]] = self.get("--filename=-", given=yaml.safe_dump_all(objects))["items"]
        return found

    def wait_until(self, condition: Callable[[], bool], what: str, *, seconds: float = ANSWER_SECONDS_MAX) -> None:
        """Returns once `condition` holds. Raises `ProcessDied` when a program ends first, `DeadlinePassed` after `seconds`."""

        def holds_while_all_run() -> bool:
            for child in (self._etcd, self._api, *self._workers):
                if not child.is_running:
                    raise ProcessDied(child.obituary())
            return condition()

        wait_until(holds_while_all_run, seconds, what, every=_POLL_SECONDS)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _key_file(self) -> Path:
        return self._folder / "service-accounts.pem"

    @property
    def _token_file(self) -> Path:
        return self._folder / "tokens.csv"

    def _child(self, program: str, *arguments: str) -> Child:
        argv = [str(PROGRAMS / "control_plane"), program, *arguments]
        return Child(program, argv, log_file=self._folder / f"{program}.log")

    def _etcd_arguments(self) -> list[str]:
        clients, peers = f"http://{_HOST}:{self._etcd_port}", f"http://{_HOST}:{free_port()}"
        return [
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--log-level=warn",
            # Nothing here outlives the machine.
            "--unsafe-no-fsync",
        ]

    def _api_arguments(self) -> list[str]:
        return [
            f"--etcd-servers=http://{_HOST}:{self._etcd_port}",
            f"--bind-address={_HOST}",
            f"--advertise-address={_HOST}",
            f"--secure-port={self._api_port}",
            f"--cert-dir={self._certificates}",
            f"--token-auth-file={self._token_file}",
            "--authorization-mode=RBAC",
            "--anonymous-auth=false",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._key_file}",
            f"--service-account-signing-key-file={self._key_file}",
            "--service-cluster-ip-range=10.0.0.0/16",
            # No pod will ever come to a server on loopback.
            "--endpoint-reconciler-type=none",
        ]

    def _worker_arguments(self) -> list[str]:
        return [
            f"--kubeconfig={self._kubeconfig}",
            "--leader-elect=false",
            f"--bind-address={_HOST}",
            f"--secure-port={free_port()}",
            f"--cert-dir={self._certificates}",
        ]

    def _manager_arguments(self) -> list[str]:
        return [
            *self._worker_arguments(),
            f"--service-account-private-key-file={self._key_file}",
            f"--root-ca-file={self._server_certificate}",
            # Volumes are folders of this machine, of the controller manager's own making.
            "--enable-hostpath-provisioner",
            # A quota's count may be outdated until it is counted again, by default every five minutes.
            "--resource-quota-sync-period=5s",
        ]

    def _kwok_arguments(self) -> list[str]:
        return [
            f"--kubeconfig={self._kubeconfig}",
            f"--config={PROGRAMS / 'stages.yaml'}",
            "--manage-all-nodes",
            f"--server-address={_HOST}:{free_port()}",
            "--node-lease-duration-seconds=40",
        ]

    @property
    def _server_certificate(self) -> Path:
        # The API server makes it at its first start, with the authority that it is checked with.
        return self._certificates / "apiserver.crt"

    def _access(self, token: str) -> str:
        server = {"server": f"https://{_HOST}:{self._api_port}", "certificate-authority": str(self._server_certificate)}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "local", "cluster": server}],
                "users": [{"name": "tester", "user": {"token": token}}],
                "contexts": [{"name": "local", "context": {"cluster": "local", "user": "tester"}}],
                "current-context": "local",
            }
        )

    def _is_ready(self) -> bool:
        try:
            self.kubectl("get", "--raw=/readyz")
        except KubectlFailed:
            return False
        return True


def missing_programs() -> list[str]:
    """What has to be built before a cluster can start."""
    return [name for name in ("control_plane", "kwok", "stages.yaml", "kinds.yaml") if not (PROGRAMS / name).exists()]
