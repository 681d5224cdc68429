#!/usr/bin/env python3
"""The examples of examples/engines: ranks inside Ray and Dask, which meet in a store of theirs.

usage: engines_test.py FOLDER [TEST...]    in FOLDER is the package `hocket`
"""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from pathlib import Path

from launch import python_with

FOLDER = sys.argv.pop(1)
EXAMPLES = Path(__file__).resolve().parents[2] / "examples/engines"
PACKAGES = {"ray_actors": "ray", "dask_workers": "distributed"}
RANKS = 3


class Engines(unittest.TestCase):
    def check(self, name: str) -> None:
        python = python_with(PACKAGES[name])
        if python is None:
            self.skipTest(f"no Python here has the package {PACKAGES[name]}")
        done = subprocess.run([python, EXAMPLES / f"{name}.py", "--ranks", str(RANKS)],
                              env={**os.environ, "PYTHONPATH": FOLDER}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=150, check=False)
        sums = [float(sum(range(RANKS)))] * RANKS
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{RANKS} ranks, the sum is {sums}", done.stdout)

    def test_ray(self) -> None:
        self.check("ray_actors")

    def test_dask(self) -> None:
        self.check("dask_workers")


if __name__ == "__main__":
    missing = [each for each in PACKAGES.values() if python_with(each) is None]
    if len(missing) == len(PACKAGES):
        print(f"# skipped: no Python here has one of the packages {', '.join(missing)}")
        sys.exit(77)
    unittest.main(verbosity=2)
