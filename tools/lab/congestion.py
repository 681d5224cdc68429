"""Congestion control: which a lab's hosts may be given.

A network namespace takes only what the machine allows everybody. What it does not allow is allowed
while a lab is made; hosts keep what they were given then.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plan import Wrong

SETTINGS = Path("/proc/sys/net/ipv4")
ALLOWED = SETTINGS / "tcp_allowed_congestion_control"


@contextmanager
def allowed(name: str) -> Iterator[None]:
    available = (SETTINGS / "tcp_available_congestion_control").read_text("ascii").split()
    if name not in available:
        raise Wrong(f"the kernel has no congestion control {name!r}: it has {', '.join(available)}; "
                    f"`modprobe tcp_{name}` may add it")
    with ALLOWED.open("r", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # or another netlab would restore what we just set
        before = ALLOWED.read_text("ascii").split()
        if name in before:
            yield
            return
        allow([*before, name])
        try:
            yield
        finally:
            allow(before)


def allow(names: list[str]) -> None:
    try:
        ALLOWED.write_text(" ".join(names), "ascii")
    except OSError as error:
        raise Wrong(f"{ALLOWED} can't be set to {names} ({error.strerror}): add the congestion "
                    "control there yourself, or take another with --congestion") from None
