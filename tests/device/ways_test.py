#!/usr/bin/env python3
"""Which way device memory goes, and what NCCL is asked for: by the log of the fake NCCL."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unittest
from collections import Counter

HOCKET = PROGRAM = FAKE_DEVICE = NEW_NCCL = OLD_NCCL = FAKE_ADAPTER = ""  # the arguments
RANKS = 2
STAGED = "device memory is staged through the host: "
GPUDIRECT = "device memory by GPUDirect"
NO_GPUDIRECT = "device memory without GPUDirect: "


class Log:
    def __init__(self, text: str) -> None:
        self.calls = Counter(re.findall(r"nccl (\w+) rank=", text))
        self.why_staged = re.findall(re.escape(STAGED) + "(.*)", text)
        self.gpudirect = text.count(GPUDIRECT)
        self.no_gpudirect = re.findall(re.escape(NO_GPUDIRECT) + "(.*)", text)
        told = re.findall(r"fake adapter registered=(\d+) left=(\d+) sent=(\d+) received=(\d+)", text)
        self.adapters = [tuple(map(int, each)) for each in told]


def device(*arguments: str, on_rank_1: str = "", **variables: str) -> Log:
    """All checks of the program, or `few`; `on_rank_1`: NAME=value of that rank only."""
    inherited = {
        name: text for name, text in os.environ.items()
        if not name.startswith(("HOCKET_", "FAKE_"))
    }
    wanted = {"HOCKET_DEVICE_MODULE": FAKE_DEVICE, "HOCKET_LOG_LEVEL": "info", "FAKE_NCCL": "log"}
    program = [PROGRAM, *arguments]
    if on_rank_1:
        script = '[ "$RANK" = 1 ] && export "$0"; exec "$@"'
        program = ["sh", "-c", script, on_rank_1, *program]
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
        """All ranks of the world say so, and say the same; none asks NCCL for anything."""
        self.assertGreaterEqual(sum(why in each for each in log.why_staged), RANKS, log.why_staged)
        self.assertEqual(log.calls, Counter())

    def test_nccl_is_not_wanted_on_one_rank(self) -> None:
        log = device("few", HOCKET_NCCL_LIBRARY=NEW_NCCL, on_rank_1="HOCKET_NCCL=0")
        self.expect_staged(log, "rank 1: ")

    def test_versions_differ(self) -> None:
        log = device("few", HOCKET_NCCL_LIBRARY=NEW_NCCL, on_rank_1="FAKE_NCCL=log,version=22501")
        self.expect_staged(log, "rank 0 has version 2.28.9, and rank 1 has 2.25.1")

    def test_no_nccl(self) -> None:
        self.expect_staged(device("few", HOCKET_NCCL_LIBRARY="/nowhere/libnccl.so.2"), "rank 0: ")

    def gpudirect(self, *arguments: str, on_rank_1: str = "") -> Log:
        return device(*arguments, HOCKET_NCCL="0", HOCKET_GPUDIRECT="1",
                      HOCKET_TRANSPORT_PATH=FAKE_ADAPTER, FAKE_ADAPTER="log", on_rank_1=on_rank_1)

    def test_gpudirect(self) -> None:
        log = self.gpudirect()
        self.assertGreaterEqual(log.gpudirect, RANKS)
        self.assertEqual(log.no_gpudirect, [])
        self.assertEqual(len(log.adapters), RANKS)
        for registered, left, sent, received in log.adapters:
            self.assertGreater(registered, 0)
            self.assertEqual(left, 0)
            self.assertGreater(min(sent, received), 10 << 20)

    def expect_no_gpudirect(self, log: Log, why: str, registered: int = 0) -> None:
        """All ranks say why, and what one has registered in vain it gives back."""
        self.assertEqual(log.gpudirect, 0)
        self.assertGreaterEqual(len(log.no_gpudirect), RANKS)
        for each in log.no_gpudirect:
            self.assertIn(why, each)
        self.assertGreaterEqual(len(log.adapters), 1)
        for had, left, sent, received in log.adapters:
            self.assertGreaterEqual(had, registered)
            self.assertEqual((left, sent, received), (0, 0, 0))

    def test_gpudirect_is_not_wanted_on_one_rank(self) -> None:
        log = self.gpudirect("few", on_rank_1="HOCKET_GPUDIRECT=0")
        self.expect_no_gpudirect(log, "rank 1: it has no HOCKET_GPUDIRECT=1")

    def test_an_adapter_does_not_take_the_memory_on_one_rank(self) -> None:
        log = self.gpudirect("few", on_rank_1="FAKE_ADAPTER=refuse")
        self.expect_no_gpudirect(log, "rank 1: the fake adapter is full; sharing it as a dma-buf", 1)

    def test_one_rank_is_reached_without_an_adapter(self) -> None:
        log = device("few", HOCKET_NCCL="0", HOCKET_GPUDIRECT="1",
                     HOCKET_TRANSPORT_PATH=FAKE_ADAPTER, FAKE_ADAPTER="log",
                     HOCKET_TRANSPORT="fake,tcp", on_rank_1="HOCKET_TRANSPORT=tcp")
        self.expect_no_gpudirect(log, "rank 0: the transport has no adapter")

    def test_nor_is_gpudirect_asked_for_where_nccl_does_all(self) -> None:
        log = device(HOCKET_NCCL_LIBRARY=NEW_NCCL, HOCKET_GPUDIRECT="1",
                     HOCKET_TRANSPORT_PATH=FAKE_ADAPTER)
        self.assertEqual((log.gpudirect, log.no_gpudirect), (0, []))

    def test_algorithms_that_touch_memory_are_not_taken(self) -> None:
        rules = "binomial,bruck,two_level"
        log = device(HOCKET_NCCL="0", HOCKET_GPUDIRECT="1", HOCKET_TRANSPORT_PATH=FAKE_ADAPTER,
                     HOCKET_ALGORITHM=rules)
        self.assertGreaterEqual(log.gpudirect, RANKS)


if __name__ == "__main__":
    HOCKET, PROGRAM, FAKE_DEVICE, NEW_NCCL, OLD_NCCL, FAKE_ADAPTER = sys.argv[1:7]
    unittest.main(verbosity=2, argv=sys.argv[:1])
