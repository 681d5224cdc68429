"""The first process of a lab, with which everything in it dies.

It is the init of a process namespace of its own, in the network namespace that is the switch. Each
host is a set of namespaces held by a process that sleeps; its name tells the lab and the host.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

import kernel
import network
from plan import Plan, Wrong

SWITCH = "switch"  # a process in the keeper's namespaces, by which they are found
HOST_NAMESPACES = kernel.NEW_NETWORK | kernel.NEW_MOUNTS | kernel.NEW_NAME | kernel.NEW_IPC
CGROUPS = "/sys/fs/cgroup"


def title(lab: str, host: str) -> str:
    """What a process that holds a host is called."""
    return f"netlab/{lab}/{host}"


def keep(plan: Plan, alive: int, ready: int) -> NoReturn:
    """Makes the lab, says so (or what is wrong) on ready, and ends when alive is closed."""
    kernel.die_with_parent()
    os.setsid()  # a terminal's signals are for the command
    try:
        make(plan)
        os.write(ready, b"ready")
    except (OSError, Wrong) as error:
        os.write(ready, str(error).encode())
        os._exit(1)
    os.close(ready)
    be_silent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries whoever has no parent
    os.read(alive, 1)
    os._exit(0)


def make(plan: Plan) -> None:
    kernel.unshare(kernel.NEW_NETWORK | kernel.NEW_MOUNTS | kernel.NEW_NAME)
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("proc", "/proc", "proc")
    know_all_hosts(plan)
    write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
    network.make_switch(plan)
    hold(plan, SWITCH)
    network.connect(plan, [hold(plan, host) for host in plan.host_names()])


def know_all_hosts(plan: Plan) -> None:
    """A file of host names over the machine's, in the lab alone: it is in no folder."""
    kernel.mount("netlab", "/tmp", "tmpfs")
    with open("/tmp/hosts", "w", encoding="ascii") as hosts:
        print("127.0.0.1 localhost", file=hosts)
        for number, name in enumerate(plan.host_names(), 1):
            print(f"10.77.0.{number} {name}", file=hosts)
    kernel.mount("/tmp/hosts", "/etc/hosts", flags=kernel.BIND)
    kernel.unmount("/tmp")


def hold(plan: Plan, host: str) -> int:
    """Starts the process that holds a host; returns when its namespaces are there."""
    said, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if host != SWITCH:
                be_host(plan, host)
            be_silent()
            os.execvp("sleep", [title(plan.name, host), "infinity"])
        except OSError as error:
            os.write(say, str(error).encode())
        os._exit(1)
    os.close(say)  # the other's end is closed when it becomes the sleeper
    with os.fdopen(said, "rb") as pipe:
        if trouble := pipe.read():
            raise Wrong(f"{host} could not be made: {trouble.decode()}")
    return pid


def be_host(plan: Plan, host: str) -> None:
    kernel.unshare(HOST_NAMESPACES)
    kernel.set_host_name(host)
    write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
    kernel.mount("shm", "/dev/shm", "tmpfs")
    # /sys shows the network of whoever mounted it; programs read their share of the machine below.
    cgroups = os.open(CGROUPS, os.O_PATH) if os.path.isdir(CGROUPS) else -1
    kernel.mount("sysfs", "/sys", "sysfs")
    if cgroups >= 0:
        kernel.mount(f"/proc/self/fd/{cgroups}", CGROUPS, flags=kernel.BIND | kernel.RECURSIVE)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def be_silent() -> None:
    """Lets go of the streams, so that their readers see the end of what the command writes."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.close(null)
