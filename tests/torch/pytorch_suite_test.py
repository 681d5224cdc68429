#!/usr/bin/env python3
"""PyTorch's own tests of torch.distributed pass over Hocket wherever they pass over Gloo.

usage: pytorch_suite_test.py FOLDER RANKS...    in FOLDER is the package `hocket`
"""

from __future__ import annotations

import json
import subprocess
import sys
import unittest
from pathlib import Path

from launch import compile_beforehand, environment_of, run_with_torch

run_with_torch()
import torch  # noqa: E402

FOLDER = sys.argv.pop(1)
RANKS = sys.argv[1:]
ENVIRONMENT = environment_of(FOLDER, HOCKET_SECRET="of this test")
TIMEOUT_S = 1800

# Tests that do not pass over Hocket, and why.
EXPLAINED = {
    "test_ddp_logging_data_cpu": "to torch, every backend from outside is named custom",
    "test_new_subgroups_with_group_param": "in Gloo's place, groups meet in torch's store, by names of which this "
                                           "test uses each twice; see test_parts_of_parts in world.py",
}


# Tests that pass under Hocket's own name only, and why.
OF_NAMES = {
    f"test_{call}_{profiler}": "the profiler's events have Hocket's name"
    for call in ("isend", "send_recv_with_tag") for profiler in ("autograd_profiler", "torch_profiler")
}


def run(backend: str, ranks: str) -> dict:
    suite = Path(__file__).with_name("pytorch_suite.py")
    done = subprocess.run([sys.executable, suite, backend, ranks], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S,
                          check=False)
    Path(FOLDER, f"pytorch-{torch.__version__}-{backend}-{ranks}.log").write_text(done.stdout)
    result = json.loads(done.stdout.splitlines()[-1])
    print(f"{backend}, {ranks} ranks: {result['passed']} passed, {len(result['failed'])} failed, "
          f"{len(result['skipped'])} skipped", flush=True)
    return result


class PyTorchSuite(unittest.TestCase):
    def test_each(self) -> None:
        """None fails, and each runs under one of the names: torch leaves out many tests of a backend that it
        does not know."""
        for ranks in RANKS:
            with self.subTest(ranks=ranks):
                gloo = run("gloo", ranks)
                self.assertGreater(gloo["passed"], 80)
                renamed, named = run("hocket-as-gloo", ranks), run("hocket", ranks)
                allowed = EXPLAINED.keys() | dict(gloo["failed"]).keys()
                failed = {name: why for name, why in renamed["failed"] if name not in OF_NAMES}
                failed |= dict(named["failed"])
                self.assertEqual({name: why for name, why in failed.items() if name not in allowed}, {})
                missed = [dict(result["failed"] + result["skipped"]) for result in (renamed, named)]
                allowed |= dict(gloo["skipped"]).keys()
                self.assertEqual({name: [each[name] for each in missed]
                                  for name in missed[0].keys() & missed[1].keys() - allowed}, {})


if __name__ == "__main__":
    print(f"torch {torch.__version__}", flush=True)
    compile_beforehand(ENVIRONMENT)
    unittest.main(argv=sys.argv[:1], verbosity=2)
