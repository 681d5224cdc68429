"""Finds a Python that has a package: this one, Debian's, or that of `tools/setup --for frameworks`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
NEWEST = str(CACHE / "hocket/frameworks/bin/python")


def python_with(package: str) -> str | None:
    for python in (sys.executable, "/usr/bin/python3", NEWEST):
        find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
        if Path(python).exists() and subprocess.run([python, "-c", find], check=False).returncode == 0:
            return python
    return None


def run_with(package: str) -> None:
    """Runs this script again with a Python that has the package, if this one has it not and another has."""
    python = python_with(package)
    if python not in (None, sys.executable):
        os.execv(python, [python, *sys.argv])
