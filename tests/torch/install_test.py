#!/usr/bin/env python3
"""The commands of docs/guide/pytorch.md: from the source to a step of DDP over Hocket.

usage: install_test.py [TEST...]
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launch import run_with_torch

run_with_torch()
import torch  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guide/pytorch.md").read_text()


def command(beginning: str) -> list[str]:
    """The line of the guide that begins so, with this Python in place of the one it names."""
    found = re.search(rf"^{re.escape(beginning)}.*$", GUIDE, re.MULTILINE)
    assert found is not None, f"the guide has no command {beginning}"
    return shlex.split(re.sub(r"(/usr/bin/)?python3", sys.executable, found[0]))


# The installed package says which backend it has (entry point torch.distributed.backends).
WITHOUT_IMPORT = """
import tempfile, torch, torch.distributed as dist
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("hocket", init_method=f"file://{folder}/store", rank=0, world_size=1)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()
"""


class Install(unittest.TestCase):
    def test_setup_does_what_the_guide_says(self) -> None:
        setup = (ROOT / "tools/setup").read_text("utf-8")
        done = re.findall(r"^  (/usr/bin/python3 -m .*)$", setup, re.MULTILINE)
        self.assertEqual(len(done), 2)
        self.assertIn("\n".join(done), GUIDE)

    def run_in_tree(self, words: list[str], **environment: str) -> str:
        done = subprocess.run(words, cwd=ROOT, env={**os.environ, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_a_step(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = {"--break-system-packages": f"--target={folder}"}
            install = [place.get(each, each)
                       for each in command("/usr/bin/python3 -m pip install")]
            self.assertIn(f"--target={folder}", install)
            self.run_in_tree([*install, "--no-index"])
            environment = {"PYTHONPATH": folder, "PATH": f"{folder}/bin:{os.environ['PATH']}",
                           "XDG_CACHE_HOME": f"{folder}/cache"}
            self.assertIn("hocket", self.run_in_tree(["hocket", "--version"], **environment))
            self.run_in_tree([sys.executable, "-m", "hocket.run", "-n", "2", "--", "true"], **environment)
            trained = self.run_in_tree(
                [*command("hocket run -n 2 -- python3 examples/torch/ddp.py"), "--steps", "2", "--width", "50"],
                **environment)
            self.assertRegex(trained, r"2 ranks, hocket: loss \d")
            if tuple(int(each) for each in torch.__version__.split(".")[:2]) < (2, 14):
                print(f"... skipped 'torch {torch.__version__} finds no backend that is not imported'", flush=True)
                return
            self.run_in_tree([sys.executable, "-c", WITHOUT_IMPORT], **environment)


if __name__ == "__main__":
    unittest.main(verbosity=2)
