#!/usr/bin/env python3
"""Which way device memory goes, and what NCCL is asked for: by the log of the fake NCCL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from collections import Counter

HOCKET = PROGRAM = FAKE_DEVICE = NEW_NCCL = OLD_NCCL = ""  # the arguments
RANKS = 2
STAGED = "device memory is staged through the host: "


class Log:
    def __init__(self, text: str) -> None:
        self.calls = Counter(re.findall(r"nccl (\w+) rank=", text))
        self.why_staged = re.findall(re.escape(STAGED) + "(.*)", text)


def device(*, on_rank_1: str = "", **variables: str) -> Log:
    """All checks of the program; `on_rank_1`: NAME=value of that rank only."""
    inherited = {
        name: text for name, text in os.environ.items()
        if not name.startswith(("HOCKET_", "FAKE_"))
    }
    wanted = {"HOCKET_DEVICE_MODULE": FAKE_DEVICE, "HOCKET_LOG_LEVEL": "info", "FAKE_NCCL": "log"}
    program = [PROGRAM]
    if on_rank_1:
        script = '[ "$RANK" = 1 ] && export "$0"; exec "$@"'
        program = ["sh", "-c", script, on_rank_1, PROGRAM]
    ran = subprocess.run(
        [HOCKET, "run", "-n", str(RANKS), "--", *program],
        env={**inherited, **wanted, **variables}, capture_output=True, text=True, timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return Log(ran.stderr)


class Ways(unittest.TestCase):
    def test_nccl(self) -> None:
        log = device(HOCKET_NCCL_LIBRARY=NEW_NCCL)
        self.assertEqual(log.why_staged, [])
        for call in ("ncclAllReduce", "ncclReduce", "ncclBroadcast", "p2p"):
            self.assertGreater(log.calls[call], 0, call)

    def test_split_and_prepare(self) -> None:
        log = device(HOCKET_NCCL_LIBRARY=NEW_NCCL)
        self.assertEqual(log.calls["ncclGetUniqueId"], 1)
        self.assertEqual(log.calls["ncclCommInitRankConfig"], RANKS)
        self.assertEqual(log.calls["ncclCommSplit"], RANKS)
        self.assertGreaterEqual(log.calls["ncclCommRegister"], RANKS)
        self.assertEqual(log.calls["ncclCommDeregister"], log.calls["ncclCommRegister"])

    def test_an_old_nccl(self) -> None:
        log = device(HOCKET_NCCL_LIBRARY=OLD_NCCL)
        self.assertEqual(log.why_staged, [])
        self.assertGreater(log.calls["ncclAllReduce"], 0)
        self.assertGreater(log.calls["p2p"], 0)
        self.assertEqual(log.calls["ncclCommRegister"], 0)

    def expect_staged(self, log: Log, why: str) -> None:
        """All ranks of the world say so, and say the same; parts of one rank find their own way."""
        self.assertGreaterEqual(sum(why in each for each in log.why_staged), RANKS, log.why_staged)
        self.assertEqual(log.calls["ncclReduce"] + log.calls["ncclCommSplit"], 0)

    def test_nccl_is_not_wanted_on_one_rank(self) -> None:
        log = device(HOCKET_NCCL_LIBRARY=NEW_NCCL, on_rank_1="HOCKET_NCCL=0")
        self.expect_staged(log, "rank 1: ")

    def test_versions_differ(self) -> None:
        log = device(HOCKET_NCCL_LIBRARY=NEW_NCCL, on_rank_1="FAKE_NCCL=log,version=22501")
        self.expect_staged(log, "rank 0 has version 2.28.9, and rank 1 has 2.25.1")

    def test_no_nccl(self) -> None:
        self.expect_staged(device(HOCKET_NCCL_LIBRARY="/nowhere/libnccl.so.2"), "rank 0: ")


if __name__ == "__main__":
    HOCKET, PROGRAM, FAKE_DEVICE, NEW_NCCL, OLD_NCCL = sys.argv[1:6]
    unittest.main(verbosity=2, argv=sys.argv[:1])
