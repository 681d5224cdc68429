#!/usr/bin/env python3
"""Runs world.py on some ranks. Skips (77) where torch is missing.

usage: launch.py [--newest] [--plain=RANK,...] FOLDER RANKS [CASE...]

In FOLDER is the package `hocket`. --plain: these ranks have no C++ compiler; unless cases are named, those
that need one are left out. All tests of torch take --newest: they run with the newest torch, which
tools/setup --for frameworks installs, instead of the first that is found.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / each) for each in ("support", "integration")]
from pythons import NEWEST, python_with  # noqa: E402
from surroundings import free_port  # noqa: E402, F401

TIMEOUT_S = 120


def python_with_torch() -> str:
    """As the arguments want it. Ends the script, with 77, if there is none."""
    if "--newest" in sys.argv:
        sys.argv.remove("--newest")
        if not Path(NEWEST).exists():
            print(f"# skipped: no {NEWEST}: tools/setup --for frameworks installs it")
            sys.exit(77)
        return NEWEST
    python = python_with("torch")
    if python is None:
        print("# skipped: no Python here has torch: tools/setup --for python installs it")
        sys.exit(77)
    return python


def run_with_torch() -> None:
    """Runs this script again with a Python that has torch, unless this one is that."""
    python = python_with_torch()
    if python != sys.executable:
        os.execv(python, [python, *sys.argv])


def environment_of(folder: str, **more: str) -> dict[str, str]:
    """For programs that import the package in this folder."""
    return {**os.environ, "PYTHONPATH": folder, "XDG_CACHE_HOME": f"{folder}/cache", **more}


def compile_beforehand(environment: dict[str, str], python: str = sys.executable) -> None:
    """What connects torch and Hocket, as it may take longer than ranks wait."""
    subprocess.run([python, "-m", "hocket.torch"], env=environment, check=True)


def mpirun(kind: str, *options: str) -> list[str] | None:
    """The beginning of a command that runs a program on two ranks, if this MPI is installed."""
    program = shutil.which(f"mpirun.{kind}")
    return [program, *options, "-n", "2"] if program else None


class Result(unittest.TextTestResult):
    """Whether a skipped test counts as run depends on the version of Python."""

    passed = 0

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().addSuccess(test)
        self.passed += 1


def stand_in_for_expecttest() -> None:
    """PyTorch's tests import it, and use nothing of it here; Debian has none."""
    if importlib.util.find_spec("expecttest") is None:
        sys.modules["expecttest"] = types.ModuleType("expecttest")
        sys.modules["expecttest"].TestCase, sys.modules["expecttest"].ACCEPT = unittest.TestCase, False


def main() -> int:
    python = python_with_torch()
    plain = []
    if sys.argv[1].startswith("--plain="):
        plain = [int(each) for each in sys.argv.pop(1).partition("=")[2].split(",")]
    folder, size, cases = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    environment = environment_of(folder, OMP_NUM_THREADS="1", HOCKET_SECRET="of this test")
    without_compiler = {**environment, "CXX": "", "PATH": "", "XDG_CACHE_HOME": f"{folder}/no-cache"}
    if plain:
        cases = cases or ["Collectives", "Works", "Messages", "Groups", "Training", "Trouble"]
    compile_beforehand(environment, python)
    world = Path(__file__).with_name("world.py")
    with tempfile.TemporaryDirectory() as meeting:
        ranks = [subprocess.Popen([python, world, folder, f"{meeting}/store", str(rank), str(size),
                                   *cases], env=without_compiler if rank in plain else environment)
                 for rank in range(size)]
        try:
            statuses = [rank.wait(TIMEOUT_S) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
    one_dies = size > 1 and (not cases or "Trouble" in cases)
    wanted = [0] * (size - 1) + [-signal.SIGKILL if one_dies else 0]
    if statuses != wanted:
        print(f"launch: the ranks ended with {statuses} instead of {wanted}")
    return int(statuses != wanted)


if __name__ == "__main__":
    sys.exit(main())
