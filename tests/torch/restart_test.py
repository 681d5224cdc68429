#!/usr/bin/env python3
"""A rank is killed, and its launcher starts all of them again: they go on from the last checkpoint, and
end with the loss of ranks that nobody killed.

usage: restart_test.py FOLDER HOCKET [TEST...]    in FOLDER is the package `hocket`; HOCKET is the program
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launch import compile_beforehand, environment_of, free_port, run_with_torch

run_with_torch()
FOLDER, HOCKET = sys.argv[1:3]
del sys.argv[1:3]

import torch  # noqa: E402

TORCH = tuple(int(each) for each in torch.__version__.split(".")[:2])
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/torch/restart.py"
ENVIRONMENT = environment_of(FOLDER, OMP_NUM_THREADS="1")
HOCKET_RUN = [HOCKET, "run", "--no-tag-output", "-n", "2", "--max-restarts", "1", "--", sys.executable]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--max-restarts=1"]
TIMEOUT_S = 100


class Restarts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkpoint = Path(folder.name) / "state.pt"

    def run_launchers(self, *launchers: list[str], kill_at: int) -> str:
        """Returns what they printed."""
        words = [EXAMPLE, self.checkpoint, "--steps", "12", "--every", "4", "--width", "50",
                 "--kill-at", str(kill_at)]
        running = [subprocess.Popen([*launcher, *words], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                   for launcher in launchers]
        try:
            printed = "".join(each.communicate(timeout=TIMEOUT_S)[0] for each in running)
        finally:
            for each in running:
                each.kill()
        self.assertEqual([each.returncode for each in running], [0] * len(running), printed)
        return printed

    def loss(self, printed: str) -> str:
        found = re.search(r"2 ranks, hocket: loss (\S+),", printed)
        self.assertIsNotNone(found, printed)
        return found[1]

    def check(self, *launchers: list[str]) -> None:
        printed = self.run_launchers(*launchers, kill_at=6)
        self.assertEqual(printed.count("goes on from step 4"), 1, printed)
        self.checkpoint.unlink()
        self.assertEqual(self.loss(printed), self.loss(self.run_launchers(HOCKET_RUN, kill_at=-1)))

    def test_hocket_run(self) -> None:
        self.check(HOCKET_RUN)

    @unittest.skipIf(TORCH < (2, 0), "torchrun of torch 1.13 does not run on this Python")
    def test_torchrun(self) -> None:
        self.check([*TORCHRUN, "--nproc-per-node=2", f"--master-port={free_port()}"])

    @unittest.skipIf(TORCH < (2, 0), "torchrun of torch 1.13 does not run on this Python")
    def test_two_agents_of_torchrun(self) -> None:
        meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=job"]
        agent = [*TORCHRUN, "--nnodes=2", "--nproc-per-node=1", "--local-addr=127.0.0.1", *meeting]
        self.check(agent, agent)


if __name__ == "__main__":
    print(f"torch {torch.__version__}", flush=True)
    compile_beforehand(ENVIRONMENT)
    unittest.main(verbosity=2)
