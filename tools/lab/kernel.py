"""Calls of the kernel that Python 3.11 lacks: namespaces, mounts, and death with the parent."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable

NEW_MOUNTS = 0x00020000
NEW_NAME = 0x04000000  # of the host
NEW_IPC = 0x08000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000

BIND = 0x1000
RECURSIVE = 0x4000
PRIVATE = 0x40000

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *values: object) -> None:
    if getattr(_libc, name)(*values) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def unshare(flags: int) -> None:
    _call("unshare", ctypes.c_int(flags))


def set_host_name(name: str) -> None:
    _call("sethostname", name.encode(), ctypes.c_size_t(len(name)))


def mount(source: str, target: str, kind: str = "", flags: int = 0) -> None:
    words = (ctypes.c_char_p(each.encode()) for each in (source, target, kind))
    _call("mount", *words, ctypes.c_ulong(flags), None)


def unmount(target: str) -> None:
    _call("umount2", ctypes.c_char_p(target.encode()), ctypes.c_int(0))


def die_with_parent() -> None:
    _call("prctl", ctypes.c_int(PR_SET_PDEATHSIG), ctypes.c_ulong(signal.SIGKILL))


def open_namespaces(pid: int, names: Iterable[str]) -> list[int]:
    return [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]


def enter(namespace: int) -> None:
    """Of processes: the children to come will be there, not the caller."""
    _call("setns", ctypes.c_int(namespace), ctypes.c_int(0))
