#!/usr/bin/env python3
"""Checks every #include against the layer table: which room may know of which.

The tables below are the architecture. To allow a new arrow, change its row and say why in
docs/decisions/. A room is a folder of lib/ (`plan`), a transport (`transports/tcp`), or a folder
of the root (`bench`). Patterns are those of the shell, and `*` also matches slashes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import dirname, normpath

from tree import CPP, Finding, among, arguments, files, includes, read, report, room

# What every room of lib/ and every transport may include.
COMMON = "hocket/export.h hocket/types.hpp hocket/status.hpp"
LIB = "base net wire link store world bridge health record reduce plan choose engine device comm capi"

# Room: the rooms and public headers that it may include, beside itself.
ARROWS = {
    "include/hocket": "hocket/*",
    "base": f"{COMMON} hocket/hocket.h hocket/setting.hpp",
    "wire": f"{COMMON} base",
    "reduce": f"{COMMON} base",
    "plan": f"{COMMON} base",
    "choose": f"{COMMON} base plan",
    "net": f"{COMMON} base",
    # A connection until it is through its handshake, and the thread on which it is watched.
    "link": f"{COMMON} base net wire",
    "store": f"{COMMON} hocket/store.hpp base net wire link",
    "world": f"{COMMON} base net wire store",
    # Between the stores of the C++ API and those inside.
    "bridge": f"{COMMON} hocket/setting.hpp hocket/store.hpp base net wire store world",
    # Who is alive, and the one story of what happened; told to whoever asks to be.
    "health": f"{COMMON} base net wire link",
    # What a rank does, for others to look at.
    "record": f"{COMMON} base",
    "engine": f"{COMMON} base plan record reduce hocket/transport.hpp",
    "device": f"{COMMON} base engine hocket/device.hpp hocket/collective.hpp hocket/transport.hpp",
    "comm": "hocket/* base net wire link store world bridge health record reduce plan choose engine device",
    "capi": "hocket/* base net wire store world bridge reduce plan engine device comm",
    # What several transports are made of.
    "transports/common": f"{COMMON} base net wire link hocket/transport.hpp",
    "transports/*": f"{COMMON} base net wire link hocket/transport.hpp transports/common",
    "transports/shm": f"{COMMON} base hocket/transport.hpp transports/common",
    # No carrier of messages, but an offload of whole collectives (decision 0013).
    "transports/nccl": f"{COMMON} base device hocket/device.hpp hocket/collective.hpp",
    "devices": "device/table.hpp",  # modules, which share nothing with the library but that
    "transports/*/conformance.cpp": "hocket/* base net wire link own tests",
    "transports": "hocket/* base engine transports/*",  # the table of those that are built in
    "bench": f"hocket/* {LIB} transports/nccl tools/program tools/simulator",
    "tools": f"hocket/* {LIB} tools/*",
    "tools/program": f"{COMMON} base",
    "tools/proof": f"{COMMON} base plan",
    "tools/simulator": f"{COMMON} base plan choose tools/proof",
    "tests": f"hocket/* {LIB} transports/* bench tools tools/*",
    "examples": "hocket/*",
    "bindings": "hocket/*",
}

# Third party: its headers, and the rooms they belong to.
THIRD_PARTY = {
    "Asio": ("asio.hpp asio/*", "link store health"),
    "verbs": ("infiniband/* rdma/*", "transports/verbs"),
    "CUDA": ("cuda.h cuda_* nccl.h nvml.h", "devices tests"),
    "fmt": ("fmt/*", f"{LIB} transports/* bench tools tools/* tests"),
    "Highway": ("hwy/*", "reduce"),
    "OpenSSL": ("openssl/*", "wire store"),
    "Catch2": ("catch2/*", "tests transports/*/conformance.cpp"),
    "torch": ("ATen/* c10/* torch/* pybind11/*", "bindings"),
    "peers": ("mpi.h gloo/* oneapi/* ucc/*", "bench"),
    "Python": ("Python.h", "bindings"),
}

# C++ has no dot in its names. Public headers stop at C++ and C; the rest of us may ask the system.
STANDARD = r"[a-z0-9_]+|(assert|errno|inttypes|limits|math|signal|std\w+|string|time|uchar)\.h"
SYSTEM = (
    r"(sys|net|netinet|arpa|linux)/.*|\w*intrin\.h|arm_\w+\.h|(cpuid|cxxabi|dirent|dlfcn|malloc"
    r"|execinfo|fcntl|fenv|getopt|grp|ifaddrs|link|locale|netdb|numa\w*|poll|pthread|pwd|sched"
    r"|semaphore|spawn|strings|syslog|termios|ucontext|unistd)\.h"
)

# Pure rooms compute: no clock, socket, thread, file or log (and style.py: no word for them). Memory
# they may have, also of the system itself.
PURE_ROOMS = "wire reduce plan choose tools/proof tools/simulator"
PURE_BAN = (
    "thread mutex shared_mutex condition_variable atomic future semaphore barrier latch stop_token "
    "iostream fstream filesystem sys/* net/* netinet/* arpa/* linux/* netdb.h poll.h unistd.h "
    "fcntl.h pthread.h sched.h signal.h dlfcn.h base/log.hpp base/clock.hpp base/fd.hpp"
)
PURE_MAY = "sys/mman.h"


def row(here: str) -> str | None:
    """The most exact row of the table for a room."""
    rows = [pattern for pattern in ARROWS if fnmatchcase(here, pattern)]
    return max(rows, key=len, default=None)


def resolve(root: Path, path: str, spelled: str) -> str | None:
    """The project file that an include means; a generated one is known by its first folder."""
    for folder in (dirname(path), "lib", "include", ".", "tools", path.split("/")[0], "tests"):
        found = normpath(f"{folder}/{spelled}")
        if not found.startswith("..") and (root / found).is_file():
            return found
    first = spelled.split("/")[0]
    if first in ("hocket", "transports"):
        return f"include/{spelled}" if first == "hocket" else spelled
    return f"lib/{spelled}" if first in LIB.split() else None


def judge(root: Path, path: str, spelled: str) -> tuple[str, str, str] | None:
    """(rule, what is wrong, fix), or None when the include may stand."""
    here = room(path)
    if among(here, PURE_ROOMS) and among(spelled, PURE_BAN) and spelled != PURE_MAY:
        return "pure", f"{here} is a pure room and includes {spelled}", "pass the value in instead"
    target = resolve(root, path, spelled)
    if target is None:
        return judge_foreign(here, spelled)
    if among(target, "lib/* transports/* include/*"):
        name = target.removeprefix("lib/").removeprefix("include/")
        if spelled != name:
            return "spelling", f"{spelled} is a second name", f'include it as "{name}"'
    allowed, there = ARROWS[row(here) or ""], room(target)
    own = here.rsplit("/", 1)[0] if "own" in allowed.split() else here
    if there in (here, own) or among(spelled, allowed) or among(there, allowed):
        return None
    return "arrow", f"{here} -> {there} ({spelled})", f"{here} may include itself and: {allowed}"


def judge_foreign(here: str, spelled: str) -> tuple[str, str, str] | None:
    for name, (headers, rooms) in THIRD_PARTY.items():
        if among(spelled, headers):
            fix = f"{name} headers belong in: {rooms}"
            return None if among(here, rooms) else ("third-party", f"{here} -> {spelled}", fix)
    known = STANDARD if here == "include/hocket" else f"{STANDARD}|{SYSTEM}"
    if re.fullmatch(known, spelled):
        return None
    return "unknown", f"{here} -> {spelled}", "give it a row in a table of tools/tidy/layers.py"


def check(root: Path, path: str) -> Iterator[Finding]:
    here, text = room(path), read(root, path)
    if row(here) is None:
        yield Finding(path, 0, "room", f"{here} is no room", "move it, or add a row to ARROWS")
        return
    if path.count("/") > 2 and here in LIB.split() and dirname(path) != "lib/plan/builders":
        yield Finding(path, 0, "folder", "a folder in a room", "only plan/builders is one")
    for line, spelled in includes(text):
        if verdict := judge(root, path, spelled):
            yield Finding(path, line, *verdict)


def main() -> int:
    root = arguments(__doc__).parse_args().root
    paths = files(root, CPP)
    findings = [finding for path in paths for finding in check(root, path)]
    count = sum(1 for path in paths for _ in includes(read(root, path)))
    return report("layers", findings, f"{count} includes in {len(paths)} files keep the table")


if __name__ == "__main__":
    sys.exit(main())
