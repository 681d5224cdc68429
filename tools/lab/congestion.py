"""Congestion control: which a lab's hosts may be given.

A network namespace takes only what the machine allows everybody. What it does not allow is allowed
while a lab is made; hosts keep what they were given then. Who allows it and takes it back is a
process of its own, so that nothing stays allowed when netlab is killed meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plan import Wrong

SETTINGS = Path("/proc/sys/net/ipv4")
ALLOWED = SETTINGS / "tcp_allowed_congestion_control"
ALLOWED_NOW = b"allowed"


@contextmanager
def allowed(name: str) -> Iterator[None]:
    available = (SETTINGS / "tcp_available_congestion_control").read_text("ascii").split()
    if name not in available:
        raise Wrong(f"the kernel has no congestion control {name!r}: it has {', '.join(available)}; "
                    f"`modprobe tcp_{name}` may add it")
    (watch, over), (ready, say) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(over)
        os.close(ready)
        allow_until(name, watch, say)
    os.close(watch)
    os.close(say)
    try:
        with os.fdopen(ready, "rb") as pipe:
            if (said := pipe.read()) != ALLOWED_NOW:
                raise Wrong(said.decode())
        yield
    finally:
        os.write(over, b"over")  # only to close it would not do: the lab's processes have it open
        os.close(over)
        os.waitpid(pid, 0)


def allow_until(name: str, watch: int, say: int) -> None:
    """Allows it until something comes, or nobody is left who could write it. Does not return."""
    os.setsid()  # a terminal's signals are not for us
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        with ALLOWED.open("r", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # or another netlab would restore what we set
            before = ALLOWED.read_text("ascii").split()
            if name in before:
                fcntl.flock(lock, fcntl.LOCK_UN)
            else:
                ALLOWED.write_text(" ".join([*before, name]), "ascii")
            os.write(say, ALLOWED_NOW)
            os.close(say)
            os.read(watch, 1)
            if name not in before:
                ALLOWED.write_text(" ".join(before), "ascii")
    except OSError as error:
        os.write(say, f"{name} can't be allowed in {ALLOWED} ({error.strerror}): add it there where the "
                      "machine's own network is, or take another with --congestion".encode())
    os._exit(0)
