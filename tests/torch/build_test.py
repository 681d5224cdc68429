#!/usr/bin/env python3
"""What binds torch to Hocket is compiled once, and used where there is no compiler, too.

usage: build_test.py FOLDER [TEST...]    in FOLDER is the package `hocket`
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launch import run_with_torch

run_with_torch()
FOLDER = sys.argv.pop(1)
CACHE = f"{FOLDER}/cache"
STRANGER = 12345
NO_COMPILER = {"CXX": "", "PATH": ""}


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": FOLDER, "XDG_CACHE_HOME": CACHE, **environment},
                          check=False)


def backend(**environment: str) -> str:
    """The module that makes process groups, and what was printed about it."""
    done = run("-c", "import hocket.torch; print(hocket.torch._creator().__name__)", **environment)
    return done.stdout + done.stderr


class Build(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        done = run("-m", "hocket.torch")
        assert done.returncode == 0, done.stderr
        cls.extension = Path(done.stdout.strip())

    def test_what_was_compiled_needs_no_compiler(self) -> None:
        self.assertEqual(backend(**NO_COMPILER), "hocket.torch._c10d\n")

    def test_it_does_not_depend_on_the_compiler(self) -> None:
        self.assertEqual(backend(CXX="/bin/false"), "hocket.torch._c10d\n")

    def test_without_a_compiler(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            said = backend(XDG_CACHE_HOME=empty, **NO_COMPILER)
        self.assertIn("hocket.torch.plain\n", said)
        self.assertIn("there is no C++ compiler", said)

    def test_a_folder_of_another_user(self) -> None:
        if os.getuid() != 0:
            self.skipTest("only root can give a folder to another user")
        with tempfile.TemporaryDirectory() as folder:
            key = Path(folder) / "hocket" / self.extension.parent.name
            shutil.copytree(self.extension.parent, key)
            os.chown(key, STRANGER, -1)
            self.assertIn("belongs to another user", backend(XDG_CACHE_HOME=folder))


if __name__ == "__main__":
    unittest.main(verbosity=2)
