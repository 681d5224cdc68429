#!/usr/bin/env python3
"""hocket-bench on device memory: every collective, type and op that there is, by each way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest

BENCH = FAKE_DEVICE = FAKE_NCCL = ""  # the arguments
COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter",
    "all_to_all", "barrier", "scan", "exscan",
)


def bench(*arguments: str, ranks: int = 2, **variables: str) -> dict:
    inherited = {
        name: text for name, text in os.environ.items()
        if not name.startswith(("HOCKET_", "FAKE_"))
    }
    ran = subprocess.run(
        [BENCH, *arguments, "--ranks", str(ranks), "-n", "3", "-w", "1", "--json"],
        env={**inherited, "HOCKET_DEVICE_MODULE": FAKE_DEVICE, **variables},
        capture_output=True, text=True, timeout=200, check=False,
    )
    assert ran.returncode == 0, f"{arguments}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}"
    return json.loads(ran.stdout)


class Bench(unittest.TestCase):
    def ways(self) -> list[dict[str, str]]:
        ways = [{"HOCKET_NCCL": "0"}]
        return [*ways, {"HOCKET_NCCL_LIBRARY": FAKE_NCCL}] if FAKE_NCCL else ways

    def test_every_collective(self) -> None:
        for way in self.ways():
            for collective in COLLECTIVES:
                with self.subTest(collective, **way):
                    told = bench(collective, "--memory", "device", "--sizes", "0,24,40K,10M",
                                 ranks=3, **way)
                    self.assertEqual(told["wrong"], 0)
                    self.assertEqual(told["conditions"]["memory"], "device")

    def test_every_type_and_op(self) -> None:
        for way in self.ways():
            told = bench("all_reduce", "--memory", "device", "--sizes", "1200", "-d", "all", "-o",
                         "all", **way)
            self.assertEqual(told["wrong"], 0)
            self.assertGreater(len(told["rows"]), 100)

    def test_in_place_started_and_prepared(self) -> None:
        for way in self.ways():
            for collective in ("all_reduce", "reduce_scatter", "all_gather", "gather", "scatter"):
                for flag in ("--in-place", "--async", "--prepared"):
                    with self.subTest(collective, flag=flag, **way):
                        told = bench(collective, "--memory", "device", "--sizes", "64,9M", flag,
                                     **way)
                        self.assertEqual(told["wrong"], 0)

    def test_other_kinds_of_memory(self) -> None:
        for kind in ("pinned", "managed"):
            told = bench("all_reduce", "--memory", kind, "--sizes", "64,9M", HOCKET_NCCL="0")
            self.assertEqual(told["wrong"], 0)


if __name__ == "__main__":
    BENCH, FAKE_DEVICE, FAKE_NCCL = sys.argv[1:4]
    unittest.main(verbosity=2, argv=sys.argv[:1])
