"""Where ranks run: all on this machine, or one on each host of an emulated cluster."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    ranks: int
    hosts: tuple[str, ...] = ()  # none: all ranks on this machine
    rsh: str = ""  # a command that takes a host and a command
    shares_memory: bool = False  # ranks use shared memory, not TCP

    @property
    def is_crowded(self) -> bool:
        """More ranks than processors."""
        return self.ranks > (os.cpu_count() or 1)

    @property
    def interface(self) -> str:
        return "eth0" if self.hosts else "lo"

    @property
    def host_slots(self) -> str:
        return ",".join(f"{host}:1" for host in self.hosts[: self.ranks])


def lab_of_environment() -> tuple[tuple[str, ...], str]:
    """The hosts that tools/netlab made, and its remote shell; none outside a lab."""
    hosts = os.environ.get("NETLAB_HOSTS", "")
    return tuple(hosts.split(",")) if hosts else (), os.environ.get("NETLAB_RSH", "")
