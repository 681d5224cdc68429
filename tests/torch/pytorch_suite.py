#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed, which come with torch, over one backend.

usage: pytorch_suite.py BACKEND RANKS [-k PATTERN]... [-v]

BACKEND hocket-as-gloo is Hocket under Gloo's name, as many of the tests ask for the name first.
The last line is JSON: how many tests passed, and the names of those that failed or were skipped, with
the reason.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import types
import unittest

from launch import Result, stand_in_for_expecttest

BACKEND, _, NAME = sys.argv[1].partition("-as-")
RANKS = sys.argv[2]
if "TEMP_DIR" not in os.environ:  # the processes that the tests spawn run this file, too
    scratch = tempfile.mkdtemp(prefix="hocket-torch-")
    os.mkdir(f"{scratch}/barrier")
    os.mkdir(f"{scratch}/test_dir")
    os.environ.update(BACKEND=NAME or BACKEND, WORLD_SIZE=RANKS, TEMP_DIR=scratch, OMP_NUM_THREADS="1")

stand_in_for_expecttest()
import torch  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

if BACKEND == "hocket":
    import hocket.torch

if NAME:
    from torch.distributed import distributed_c10d

    class AnyIsOne(type):
        def __instancecheck__(cls, group) -> bool:
            return True

    class InPlaceOfGloo(metaclass=AnyIsOne):
        def __new__(cls, store, rank: int, size: int, timeout, **_):
            extension = hocket.torch._extension()
            sends = hocket.torch.sends_of_process(extension.Sends)
            return extension.create(store, rank, size, timeout, [], False, sends)

    events_of_gloo = distributed_test.get_profiling_event

    def events_of_hocket(name: str, *arguments, **words) -> list:
        ours = name.replace(NAME, BACKEND)
        return (events_of_gloo(ours, *arguments, **words)
                or events_of_gloo(f"{ours}_coalesced", *arguments, **words))

    distributed_test.get_profiling_event = events_of_hocket
    # torch's Logger takes a backend of this name for torch's own class, and crashes.
    torch._C._distributed_c10d.Logger.set_construction_data_and_log = lambda *_: None
    gloo, wrap = distributed_c10d.ProcessGroupGloo, distributed_c10d._create_process_group_wrapper

    def wrap_with_gloo(*arguments, **words):
        """TORCH_DISTRIBUTED_DEBUG=DETAIL compares calls over a group of Gloo."""
        distributed_c10d.ProcessGroupGloo = gloo
        try:
            return wrap(*arguments, **words)
        finally:
            distributed_c10d.ProcessGroupGloo = InPlaceOfGloo

    distributed_c10d._create_process_group_wrapper = wrap_with_gloo
    distributed_c10d.ProcessGroupGloo = InPlaceOfGloo
    if hasattr(distributed_c10d, "Backend") and hasattr(torch.distributed, "_Backend"):
        torch.distributed._Backend.options = types.SimpleNamespace()  # Gloo's are written to


# What Gloo says, and what Hocket says instead.
WORDS = (
    (r"Ranks? (\d+)[, \d]* failed to pass monitoredBarrier", r"not come within .*rank \1 \\(pid"),
    (r"Rank (\d+) timed out in monitoredBarrier", r"timeout: monitored_barrier failed on rank \1 "),
    (r"Rank (\d+) successfully reached monitoredBarrier.*", r"monitored_barrier failed on rank \1 "),
    (r"^Rank (\d+)$", r"rank \1 \\(pid"),
    (r" \(Timed out\|closed\|timeout\) |Timed out waiting.*", "timeout: "),
)


class TestHocket(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """Each test starts as many processes as there are ranks."""

    def setUp(self) -> None:
        super().setUp()
        # Forked, they need not import torch, which is most of the time that the tests take.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


    def assertRaisesRegex(self, kind, pattern, *arguments, **words):  # noqa: N802
        for theirs, ours in WORDS if BACKEND == "hocket" else ():
            pattern = re.sub(theirs, ours, str(pattern))
        return super().assertRaisesRegex(kind, pattern, *arguments, **words)


def main() -> None:
    patterns = [f"*{sys.argv[i + 1]}*" for i, each in enumerate(sys.argv) if each == "-k"]
    loader = unittest.TestLoader()
    loader.testNamePatterns = patterns or None
    ran = unittest.TextTestRunner(verbosity=2 if "-v" in sys.argv else 1, resultclass=Result).run(
        loader.loadTestsFromTestCase(TestHocket))
    failed = [(str(test).split()[0], text.strip().splitlines()[-1])
              for test, text in (*ran.failures, *ran.errors)]
    skipped = [(str(test).split()[0], why) for test, why in ran.skipped]
    print(json.dumps({"passed": ran.passed, "failed": failed, "skipped": skipped}))
    sys.exit(0 if not failed else 1)


if __name__ == "__main__":
    main()
