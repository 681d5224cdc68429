#!/usr/bin/env python3
"""The examples of examples/torch on two ranks: over Hocket the loss is that of Gloo.

usage: examples_test.py FOLDER HOCKET [TEST...]    in FOLDER is the package `hocket`; HOCKET is the program
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launch import compile_beforehand, environment_of, mpirun, run_with_torch

run_with_torch()
FOLDER, HOCKET = sys.argv[1:3]
del sys.argv[1:3]

import torch  # noqa: E402

TORCH = tuple(int(each) for each in torch.__version__.split(".")[:2])
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/torch"
ENVIRONMENT = environment_of(FOLDER)


class Examples(unittest.TestCase):
    launcher = (HOCKET, "run", "--no-tag-output", "-n", "2", "--")

    def loss(self, name: str, backend: str, *words: str) -> str:
        command = [*self.launcher, sys.executable, EXAMPLES / f"{name}.py", "--backend", backend,
                   "--steps", "5", "--width", "100", *words]
        try:
            done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=200, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            printed = done.stdout
        except subprocess.TimeoutExpired as late:
            # When it is freed, Gloo of torch 1.13 sometimes waits for a thread that waits for Python's lock.
            if backend != "gloo" or TORCH >= (2, 0):
                raise
            printed = (late.stdout or b"").decode()
        found = re.search(rf"^2 ranks, {backend}: loss (\S+)", printed, re.MULTILINE)
        self.assertIsNotNone(found, printed)
        return found[1].rstrip(",")

    def compare(self, name: str, needs: tuple[int, int] = (1, 13), package: str = "torch") -> None:
        if TORCH < needs:
            self.skipTest(f"{name} needs torch {needs[0]}.{needs[1]}")
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{name} needs the package {package}")
        self.assertEqual(self.loss(name, "hocket"), self.loss(name, "gloo"))

    def test_ddp(self) -> None:
        self.compare("ddp")

    def test_zero(self) -> None:
        self.compare("zero")

    def test_fsdp(self) -> None:
        self.compare("fsdp", (2, 6))
        with tempfile.TemporaryDirectory() as folder:
            # Each goes on from the checkpoint that the one before it wrote.
            first = self.loss("fsdp", "hocket", "--checkpoint", folder)
            self.assertLess(float(self.loss("fsdp", "gloo", "--checkpoint", folder)), float(first))

    def test_tensor_parallel(self) -> None:
        self.compare("tensor_parallel", (2, 3))

    def test_lightning(self) -> None:
        self.compare("lightning_ddp", package="lightning")

    def test_lightning_by_any_launcher(self) -> None:
        self.compare("lightning_anywhere", package="lightning")
        self.launcher = mpirun("openmpi", "--allow-run-as-root", "--oversubscribe")
        if self.launcher is None:
            self.skipTest("needs openmpi-bin")
        self.compare("lightning_anywhere")

    def test_accelerate(self) -> None:
        self.compare("accelerate_ddp", package="accelerate")


if __name__ == "__main__":
    print(f"torch {torch.__version__}", flush=True)
    compile_beforehand(ENVIRONMENT)
    unittest.main(verbosity=2)
