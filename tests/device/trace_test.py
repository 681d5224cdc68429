#!/usr/bin/env python3
"""What `hocket trace` says of operations that NCCL carries out; with the fake NCCL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest

HOCKET = PROGRAM = TROUBLES = FAKE_DEVICE = NCCL = ""  # the arguments


class Trace(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_ranks(self, count: int, *program: str) -> None:
        inherited = {
            name: text for name, text in os.environ.items()
            if not name.startswith(("HOCKET_", "FAKE_"))
        }
        ran = subprocess.run(
            [HOCKET, "run", "-n", str(count), "--", *program],
            env={**inherited, "HOCKET_DEVICE_MODULE": FAKE_DEVICE, "HOCKET_NCCL_LIBRARY": NCCL,
                 "HOCKET_TRACE": self.folder.name},
            capture_output=True, text=True, timeout=100, check=False,
        )
        self.assertEqual(ran.returncode, 0, ran.stdout[-2000:] + ran.stderr[-2000:])

    def trace(self, *arguments: str) -> str:
        return subprocess.run([HOCKET, "trace", self.folder.name, *arguments], capture_output=True,
                              text=True, timeout=60, check=True).stdout

    def test_each_operation_is_recorded_to_its_end(self) -> None:
        self.run_ranks(2, PROGRAM, "few")
        timeline = f"{self.folder.name}/timeline.json"
        self.trace("--perfetto", timeline)
        with open(timeline, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        tracks = {each["args"]["name"] for each in events if each["name"] == "thread_name"}
        self.assertIn("operations by NCCL", tracks)
        ours = [each["args"] for each in events if each.get("args", {}).get("algorithm") == "nccl"]
        self.assertGreater(len(ours), 2)
        self.assertEqual({each["state"] for each in ours}, {"done"})
        self.assertGreater(max(each["bytes"] for each in ours), 0)

    def test_the_rank_that_has_not_come_is_named(self) -> None:
        self.run_ranks(3, TROUBLES, "stuck")
        (world,) = json.loads(self.trace("--json"))["worlds"]
        late = world["verdict"][0]
        self.assertRegex(late, r"^Rank 0 \(pid \d+ on .*\) never entered all_reduce\(sum, f32, "
                               r"1000 elements\) #2 by NCCL, which rank [12] called .* before it failed\.")


if __name__ == "__main__":
    HOCKET, PROGRAM, TROUBLES, FAKE_DEVICE, NCCL = sys.argv[1:6]
    unittest.main(argv=sys.argv[:1], verbosity=2)
