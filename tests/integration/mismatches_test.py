#!/usr/bin/env python3
"""Ranks make different calls while some ranks are stopped for longer than the others look for the cause.
All ranks must tell the same reason. It names both calls, unless the only rank that knows one of them was
stopped before it could tell. Argument: mismatches."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from surroundings import environment, free_port

MISMATCHES = ""  # the program
RANKS = 4
STOP_S = (0.05, 0.45)  # others wait 0.12 s for the one who decides; after 2 s they would call a rank dead
GO_S = (0.02, 0.2)
END_S = 240  # six times what it takes
SEED = int.from_bytes(os.urandom(4), "little")


class Stops(unittest.TestCase):
    def setUp(self) -> None:
        print(f"seed {SEED}", flush=True)
        port = free_port()
        self.outputs = [tempfile.TemporaryFile("w+") for _ in range(RANKS)]
        self.ranks = [
            subprocess.Popen([MISMATCHES, "stops"], stdout=self.outputs[rank], stderr=subprocess.STDOUT,
                             env=environment(RANK=rank, WORLD_SIZE=RANKS, MASTER_ADDR="127.0.0.1",
                                             MASTER_PORT=port, HOCKET_SECRET="hush"))
            for rank in range(RANKS)]

    def tearDown(self) -> None:
        for each in self.ranks:
            each.kill()
            each.wait()
        for each in self.outputs:
            each.close()

    def output(self, rank: int) -> str:
        self.outputs[rank].seek(0)
        return self.outputs[rank].read()

    def test_who_stood_still_tells_the_same_story(self) -> None:
        chance = random.Random(SEED)
        stops = 0
        end = time.monotonic() + END_S
        while time.monotonic() < end and all(each.poll() is None for each in self.ranks):
            rank = chance.choice(self.ranks)
            rank.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(*STOP_S))
            rank.send_signal(signal.SIGCONT)
            stops += 1
            time.sleep(chance.uniform(*GO_S))
        statuses = [each.wait(10) if time.monotonic() < end else each.poll() for each in self.ranks]
        self.assertEqual(statuses, [0] * RANKS, f"{stops} stops:\n" + "".join(map(self.output, range(RANKS))))
        told = re.search(r"(\d+) pairs of calls: every rank names both in (\d+),", self.output(0))
        self.assertIsNotNone(told, self.output(0))
        pairs, named = map(int, told.groups())
        self.assertGreater(named, 0.97 * pairs)
        self.assertGreater(stops, 20)
        print(f"{stops} stops; {told.group()}")


if __name__ == "__main__":
    MISMATCHES = sys.argv[1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
