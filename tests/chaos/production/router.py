"""The network between hosts: a process that carries IP packets between TUN devices, and drops and delays them by its commands.

`python -m tests.chaos.production.router ADDRESS=FD ...` reads one JSON document a line from its standard input: a list of
`[from, to, loss, delay_ms]`, which replaces the former one. Two hosts that are not in it reach each other at once and always.
"""

import heapq
import ipaddress
import itertools
import json
import os
import random
import select
import sys
import time
from typing import Final

#: As large as the devices': few large packets cost less than many small ones.
MTU: Final = 32_000
#: Bytes 16 to 20 of a header of IPv4 are the destination's address.
_DESTINATION: Final = slice(16, 20)
#: Packets that wait; what comes beyond them is lost, as in any router.
_WAITING_MAX: Final = 10_000
_BURST: Final = 32


class Router:
    """Carries packets between devices, given by the packed address of their host."""

    def __init__(self, devices: dict[bytes, int]) -> None:
        self._devices = devices
        self._rules: dict[tuple[bytes, bytes], tuple[float, float]] = {}
        self._waiting: list[tuple[float, int, int, bytes]] = []
        self._numbers = itertools.count()
        self._chance = random.Random(0)

    def set_rules(self, line: str) -> None:
        """From now on these hold, and no others."""
        self._rules = {
            (ipaddress.ip_address(source).packed, ipaddress.ip_address(to).packed): (loss, delay_ms / 1_000)
            for source, to, loss, delay_ms in json.loads(line)
        }

    def run(self) -> None:
        """Until the standard input ends."""
        commands = sys.stdin.buffer
        poller = select.epoll()
        poller.register(commands.fileno(), select.EPOLLIN)
        by_device = {device: address for address, device in self._devices.items()}
        for device in by_device:
            os.set_blocking(device, False)
            poller.register(device, select.EPOLLIN)
        while True:
            wait = max(0.0, self._waiting[0][0] - time.monotonic()) if self._waiting else -1
            for file, _ in poller.poll(wait):
                if file in by_device:
                    self._carry(by_device[file], file)
                elif line := commands.readline():
                    self.set_rules(line.decode())
                else:
                    return
            self._deliver_due()

    def _carry(self, source: bytes, device: int) -> None:
        for _ in range(_BURST):
            try:
                packet = os.read(device, MTU + 64)
            except BlockingIOError:
                return
            to = packet[_DESTINATION]
            target = self._devices.get(to)
            if target is None:
                continue
            loss, delay = self._rules.get((source, to), (0.0, 0.0))
            if loss and self._chance.random() < loss:
                continue
            if delay:
                if len(self._waiting) < _WAITING_MAX:
                    heapq.heappush(self._waiting, (time.monotonic() + delay, next(self._numbers), target, packet))
                continue
            self._write(target, packet)

    def _deliver_due(self) -> None:
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            _, _, target, packet = heapq.heappop(self._waiting)
            self._write(target, packet)

    @staticmethod
    def _write(target: int, packet: bytes) -> None:
        try:
            os.write(target, packet)
        except OSError:
            # A device that is full or down loses a packet, as a network may.
            return


def main() -> None:
    """Carries packets until the starter closes the standard input, or ends."""
    pairs = (argument.split("=") for argument in sys.argv[1:])
    Router({ipaddress.ip_address(address).packed: int(device) for address, device in pairs}).run()


if __name__ == "__main__":
    main()
