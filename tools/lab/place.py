"""Finds labs by the processes that hold them, and goes to a host of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import kernel
from keeper import SWITCH
from plan import Wrong

RSH = Path(__file__).resolve().with_name("rsh")


@dataclass
class Lab:
    name: str
    holders: dict[str, int] = field(default_factory=dict)  # by host, and the switch's

    def hosts(self) -> list[str]:
        return sorted(self.holders.keys() - {SWITCH}, key=lambda host: int(host[1:]))

    def holder(self, host: str) -> int:
        if host not in self.holders:
            names = ", ".join([*self.hosts(), SWITCH])
            raise Wrong(f"{self.name} has no host {host!r}: it has {names}")
        return self.holders[host]

    def variables(self) -> dict[str, str]:
        return {"NETLAB": self.name, "NETLAB_HOSTS": ",".join(self.hosts()), "NETLAB_RSH": str(RSH)}

    def is_around_us(self) -> bool:
        its, ours = (os.stat(f"/proc/{pid}/ns/pid") for pid in (self.holder(SWITCH), "self"))
        return its.st_ino == ours.st_ino

    def adopt_children(self) -> None:
        """The children to come are the lab's, and end with it."""
        (processes,) = kernel.open_namespaces(self.holder(SWITCH), ["pid"])
        kernel.enter(processes)
        os.close(processes)

    def way_to(self, host: str) -> Callable[[], None]:
        """What takes the calling process to a host, for good."""
        opened = kernel.open_namespaces(self.holder(host), ["net", "uts", "ipc", "mnt"])
        here = os.getcwd()

        def go() -> None:
            for each in opened:
                kernel.enter(each)
            os.chdir(here)

        return go


def labs() -> dict[str, Lab]:
    """Those that can be seen from here; from inside a lab that is the lab."""
    found: dict[str, Lab] = {}
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or entry.stat().st_uid != 0:
                continue  # any user can give a process such a name
            first = (entry / "cmdline").read_bytes().split(b"\0")[0].decode("utf-8", "replace")
        except OSError:  # it has just gone
            continue
        if first.startswith("netlab/") and first.count("/") == 2:
            _, name, host = first.split("/")
            found.setdefault(name, Lab(name)).holders[host] = int(entry.name)
    return found


def find(name: str | None) -> Lab:
    """The lab of that name, or the only one there is."""
    found = labs()
    if name in found:
        return found[name]
    if name is None and len(found) == 1:
        return next(iter(found.values()))
    there_is = f"there is {', '.join(sorted(found))}" if found else "`netlab up` makes one"
    what = f"no lab is called {name}" if name else "which lab? Say --lab NAME" if found else "no lab"
    raise Wrong(f"{what}; {there_is}")
