"""What several tests need of the machine: an environment without a launcher, and a free port."""

from __future__ import annotations

import os
import re
import socket

FOREIGN = re.compile(r"HOCKET_|OMPI_|PMI|MPI_|SLURM_|TORCHELASTIC_|MASTER_|LOCAL_|JOB_COMP"
                     r"|RANK$|WORLD_SIZE$|XDG_RUNTIME_DIR$")


def environment(**variables: object) -> dict[str, str]:
    """Ours without anything that tells of a launcher, and these."""
    inherited = {name: text for name, text in os.environ.items() if not FOREIGN.match(name)}
    return {**inherited, **{name: str(value) for name, value in variables.items()}}


def free_port(host: str = "127.0.0.1") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]
