#!/usr/bin/env python3
"""examples/boosting: LightGBM over Hocket, and over sockets of its own.

usage: boosting_test.py FOLDER HOCKET    in FOLDER is the package `hocket`; HOCKET is the program
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from launch import python_with

FOLDER, HOCKET = sys.argv[1:3]
del sys.argv[1:3]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/boosting/lightgbm_rows.py"


class Boosting(unittest.TestCase):
    def loss(self, ranks: int, network: str) -> float:
        done = subprocess.run([HOCKET, "run", "-n", str(ranks), "--", python_with("lightgbm"), EXAMPLE,
                               "--network", network], env={**os.environ, "PYTHONPATH": FOLDER},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.search(rf"{ranks} ranks over {network}, final loss (.*)", done.stdout)
        self.assertIsNotNone(found, done.stdout)
        return float(found[1])

    def test_the_loss_is_that_over_sockets(self) -> None:
        for ranks in (2, 3):
            loss = self.loss(ranks, "hocket")
            self.assertAlmostEqual(loss, self.loss(ranks, "sockets"), delta=1e-3)
            self.assertLess(loss, 0.3)  # of values with a variance of 1.5


if __name__ == "__main__":
    if python_with("lightgbm") is None:
        print("# skipped: no Python here has the package lightgbm")
        sys.exit(77)
    unittest.main(verbosity=2)
