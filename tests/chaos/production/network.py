"""Hosts of a run: a network namespace each, on a network of its own whose links are cut, slow or lossy. Needs root."""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.chaos.production.router import MTU

_ROOT: Final = Path(__file__).parents[3]
#: `TUNSETIFF`, `IFF_TUN` and `IFF_NO_PI` of Linux's if_tun.h.
_SET_INTERFACE: Final = 0x400454CA
_PLAIN_PACKETS: Final = 0x0001 | 0x1000
_END_SECONDS_MAX: Final = 10.0

Link = tuple[str, str]


class CannotRun(RuntimeError):
    """The machine lacks what the run needs; the text says what to do."""


@dataclass(frozen=True)
class Host:
    """Where a process runs: the address that others reach it at, and the command that runs a program there."""

    name: str
    address: str
    command: tuple[str, ...] = ()


class Network:
    """Hosts by name, and faults of the links between them. The run itself is host `run`, outside all namespaces."""

    def __init__(self, names: Sequence[str]) -> None:
        # Two runs at a time have networks of their own.
        subnet, self._prefix = f"10.{100 + os.getpid() % 100}.7", f"ph{os.getpid()}"
        self.hosts = {"run": Host("run", f"{subnet}.1")}
        for number, name in enumerate(names, start=2):
            namespace = f"{self._prefix}-{name}"
            self.hosts[name] = Host(name, f"{subnet}.{number}", ("ip", "netns", "exec", namespace))
        self._rules: dict[Link, tuple[float, int]] = {}
        self._router: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise CannotRun("hosts are network namespaces: run as root, with iproute2 installed")
        devices: dict[str, int] = {}
        try:
            for number, host in enumerate(self.hosts.values()):
                devices[host.address] = self._connect(host, f"{self._prefix}t{number}")
            self._router = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.production.router", *(f"{at}={fd}" for at, fd in devices.items())],
                stdin=subprocess.PIPE,
                pass_fds=list(devices.values()),
                cwd=_ROOT,
                start_new_session=True,
            )
        except BaseException:
            self.close()
            raise
        finally:
            for device in devices.values():
                os.close(device)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the network. The processes on its hosts must have ended."""
        if self._router is not None:
            self._router.kill()
            self._router.communicate(timeout=_END_SECONDS_MAX)
        for host in self.hosts.values():
            if host.command:
                subprocess.run(["ip", "netns", "delete", host.command[-1]], check=False, capture_output=True)

    def cut(self, source: str, to: str) -> None:
        """What `source` sends to `to` is lost; the other way is as it was."""
        self._rules[source, to] = (1.0, 0)
        self._apply()

    def disturb(self, name: str, loss: float, delay_ms: int) -> None:
        """All that a host sends and receives is lost at this rate, and late by so much each way."""
        for other in self.hosts:
            if other != name:
                self._rules[name, other] = self._rules[other, name] = (loss, delay_ms)
        self._apply()

    def heal(self) -> None:
        """Every link carries everything at once again."""
        self._rules.clear()
        self._apply()

    def _apply(self) -> None:
        assert self._router is not None
        assert self._router.stdin is not None
        rules = [
            [self.hosts[source].address, self.hosts[to].address, loss, delay_ms]
            for (source, to), (loss, delay_ms) in self._rules.items()
        ]
        self._router.stdin.write(json.dumps(rules).encode() + b"\n")
        self._router.stdin.flush()

    @staticmethod
    def _connect(host: Host, interface: str) -> int:
        """Gives the host its device; the file through which packets come and go. It stays the router's in any namespace."""
        device = os.open("/dev/net/tun", os.O_RDWR)
        try:
            fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH", interface.encode(), _PLAIN_PACKETS))
            if host.command:
                _run("ip", "netns", "add", host.command[-1])
                _run("ip", "link", "set", interface, "netns", host.command[-1])
                _run(*host.command, "ip", "link", "set", "lo", "up")
            _run(*host.command, "ip", "address", "add", f"{host.address}/24", "dev", interface)
            _run(*host.command, "ip", "link", "set", interface, "mtu", str(MTU), "up")
        except BaseException:
            os.close(device)
            raise
        return device


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
