#!/usr/bin/env python3
"""A call takes at most 1.5 us longer in Python than in C.

usage: call_cost_test.py FOLDER HOCKET PROGRAM    in FOLDER is the package `hocket`; HOCKET is the program;
                                                  PROGRAM is made of call_cost.cpp
"""

from __future__ import annotations

import subprocess
import sys

MOST_US = 1.5
TRIES = 5  # the best of them: a busy machine only adds
PYTHON = """
import array, sys, time
sys.path.insert(0, sys.argv[1])
import hocket

world = hocket.join()
values = array.array("f", [1])
best = 1e9
for _ in range(200):
    begin = time.perf_counter()
    for _ in range(500):
        world.all_reduce(values)
    best = min(best, (time.perf_counter() - begin) / 500)
print(1e6 * best)
"""


def main() -> int:
    folder, hocket, program = sys.argv[1:]

    def time_us(*words: str) -> float:
        run = [hocket, "run", "-n", "1", "--no-tag-output", "--", *words]
        return float(subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout)

    in_c = min(time_us(program) for _ in range(TRIES))
    in_python = min(time_us(sys.executable, "-c", PYTHON, folder) for _ in range(TRIES))
    more = in_python - in_c
    print(f"all_reduce: {in_c:.2f} us in C, {in_python:.2f} us in Python: {more:.2f} us more, and at most "
          f"{MOST_US}")
    return int(more > MOST_US)


if __name__ == "__main__":
    sys.exit(main())
