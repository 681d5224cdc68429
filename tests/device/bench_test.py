#!/usr/bin/env python3
"""hocket-bench on device memory: every collective, type and op that there is, by each way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest

BENCH = FAKE_DEVICE = FAKE_ADAPTER = FAKE_NCCL = ""  # the arguments
COLLECTIVES = {  # and what NCCL is asked for; "": it is staged
    "all_reduce": "ncclAllReduce", "reduce_scatter": "ncclReduceScatter",
    "all_gather": "ncclAllGather", "broadcast": "ncclBroadcast", "reduce": "ncclReduce",
    "gather": "ncclGather", "scatter": "ncclScatter", "all_to_all": "ncclAlltoAll",
    "barrier": "ncclAllReduce", "scan": "", "exscan": "",
}
OFFLOADED = re.compile("nccl (nccl(?!Comm|Get)[A-Za-z]+|p2p) rank=")  # lines of the fake's log


def run(*arguments: str, ranks: int = 2, **variables: str) -> tuple[dict, set[str]]:
    """What it tells, and which collectives NCCL was asked for."""
    inherited = {
        name: text for name, text in os.environ.items()
        if not name.startswith(("HOCKET_", "FAKE_"))
    }
    ran = subprocess.run(
        [BENCH, *arguments, "--ranks", str(ranks), "-n", "3", "-w", "1", "--json"],
        env={**inherited, "HOCKET_DEVICE_MODULE": FAKE_DEVICE, "FAKE_NCCL": "log", **variables},
        capture_output=True, text=True, timeout=200, check=False,
    )
    assert ran.returncode == 0, f"{arguments}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}"
    return json.loads(ran.stdout), set(OFFLOADED.findall(ran.stderr))


def bench(*arguments: str, **variables: str) -> dict:
    told, calls = run(*arguments, **variables)
    assert variables.get("HOCKET_NCCL") != "0" or not calls, calls
    return told


class Bench(unittest.TestCase):
    def ways(self) -> list[dict[str, str]]:
        gpudirect = {"HOCKET_NCCL": "0", "HOCKET_GPUDIRECT": "1",
                     "HOCKET_TRANSPORT_PATH": FAKE_ADAPTER}
        ways = [{"HOCKET_NCCL": "0"}, gpudirect]
        return [*ways, {"HOCKET_NCCL_LIBRARY": FAKE_NCCL}] if FAKE_NCCL else ways

    def test_every_collective(self) -> None:
        for way in self.ways():
            for collective, call in COLLECTIVES.items():
                with self.subTest(collective, **way):
                    told, calls = run(collective, "--memory", "device", "--sizes", "0,24,40K,10M",
                                      ranks=3, **way)
                    is_offloaded = "HOCKET_NCCL_LIBRARY" in way and call
                    self.assertEqual(calls, {call} if is_offloaded else set())
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
    BENCH, FAKE_DEVICE, FAKE_ADAPTER, FAKE_NCCL = sys.argv[1:5]
    unittest.main(verbosity=2, argv=sys.argv[:1])
