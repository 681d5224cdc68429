#!/usr/bin/env python3
"""How many instructions the hot paths take, compared with what they took (instructions.json).

Counted by callgrind: unlike times, they are the same on a machine that has much else to do. A path
may take 3 % more. Where one takes more for a good reason, or less, write down what it takes now:

    tests/integration/instructions_test.py build/bench/hot_paths "gcc 12, -O2, x86_64" --update
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BASELINE = Path(__file__).with_name("instructions.json")
MORE_MAX = 1.03
RUNS = 100
PATIENCE = 120  # seconds, for one count
TOOL = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
        "--toggle-collect=*repeat*")
PROGRAM = ""  # the arguments
BUILT_BY = ""


def paths() -> list[str]:
    return subprocess.check_output([PROGRAM], text=True).splitlines()


def cost(path: str) -> int:
    """Instructions of one run; without those that fill memory, as Meson's tests would have it."""
    environment = {**os.environ, "MALLOC_PERTURB_": "0"}
    ran = subprocess.run([*TOOL, PROGRAM, path, str(RUNS)], capture_output=True, text=True,
                         timeout=PATIENCE, check=True, env=environment)
    found = re.search(r"Collected : (\d+)", ran.stderr)
    assert found, ran.stderr
    return round(int(found[1]) / RUNS)


def costs() -> dict[str, int]:
    with ThreadPoolExecutor(2) as pool:
        names = paths()
        return dict(zip(names, pool.map(cost, names)))


class Instructions(unittest.TestCase):
    def setUp(self) -> None:
        self.baseline = json.loads(BASELINE.read_text(encoding="ascii"))
        if not shutil.which(TOOL[0]):
            self.skipTest("valgrind is not here")
        if BUILT_BY != self.baseline["built_by"]:
            self.skipTest(f"built by {BUILT_BY}, and the counts are of {self.baseline['built_by']}")

    def test_no_path_takes_more(self) -> None:
        now = costs()
        allowed = self.baseline["instructions"]
        self.assertEqual(sorted(now), sorted(allowed), "the paths: write them down by --update")
        for path, count in now.items():
            share = count / allowed[path]
            print(f"{path:<32} {count:>9} {share:6.3f} of what it took", file=sys.stderr)
        for path, count in now.items():
            with self.subTest(path):
                self.assertLessEqual(count, MORE_MAX * allowed[path])

    def test_a_plan_is_built_in_time_linear_in_its_steps(self) -> None:
        allowed = self.baseline["instructions"]
        few, many = (allowed[f"build all_reduce ring of {ranks}"] for ranks in (64, 1024))
        self.assertLessEqual(many, 1.1 * few * 1023 / 63)  # as many steps a rank for each other one


if __name__ == "__main__":
    PROGRAM, BUILT_BY, *rest = sys.argv[1:]
    if rest == ["--update"]:
        BASELINE.write_text(json.dumps({"built_by": BUILT_BY, "instructions": costs()}, indent=2)
                            + "\n", encoding="ascii")
        sys.exit()
    unittest.main(argv=[sys.argv[0], "-v", *rest])
