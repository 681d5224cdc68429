"""What several tests need of the machine: an environment without a launcher, and a free port."""

from __future__ import annotations

import contextlib
import os
import random
import re
import socket
from pathlib import Path

FOREIGN = re.compile(r"HOCKET_|OMPI_|PMI|MPI_|SLURM_|TORCHELASTIC_|MASTER_|LOCAL_|JOB_COMP"
                     r"|RANK$|WORLD_SIZE$|XDG_RUNTIME_DIR$")


def environment(**variables: object) -> dict[str, str]:
    """Ours without anything that tells of a launcher, and these."""
    inherited = {name: text for name, text in os.environ.items() if not FOREIGN.match(name)}
    return {**inherited, **{name: str(value) for name, value in variables.items()}}


def free_port(host: str = "127.0.0.1") -> int:
    """None that the system gives to others, as it does while several tests run."""
    lowest_of_system = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        port = random.randrange(max(1024, lowest_of_system - 10000), lowest_of_system)
        with socket.socket(family) as probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            return port
