#!/usr/bin/env python3
"""Processes that join several worlds: one after the other and at once, however they meet."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from surroundings import environment, free_port

WORLDS = ""  # the programs: the arguments
HOCKET = ""
PATIENCE_S = 120  # for what takes a moment on a machine that has nothing else to do
SIZE = 3


class Ways(unittest.TestCase):
    """How ranks meet; each gives what they wrote."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.files = 0

    def ended(self, ranks: list[subprocess.Popen[str]]) -> str:
        for each in ranks:
            self.addCleanup(each.stdout.close)
            self.addCleanup(each.wait)
            self.addCleanup(each.kill)
        texts = []
        for each in ranks:
            text, _ = each.communicate(timeout=PATIENCE_S)
            texts.append(text)
            self.assertEqual(each.returncode, 0, "\n".join(texts))
        return "\n".join(texts)

    def start(self, *command: str, **variables: object) -> subprocess.Popen[str]:
        return subprocess.Popen(command, env=environment(**variables), stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def by_launcher(self, what: str) -> str:
        return self.ended([self.start(HOCKET, "run", "-n", str(SIZE), "--", WORLDS, what)])

    def by_master(self, what: str) -> str:
        port = free_port()
        return self.ended([
            self.start(WORLDS, what, RANK=rank, WORLD_SIZE=SIZE, MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=port) for rank in range(SIZE)])

    def by_file(self, what: str) -> str:
        self.files += 1
        url = f"file://{self.folder}/store{self.files}?size={SIZE}&rank="
        return self.ended([self.start(WORLDS, what, f"{url}{rank}", HOCKET_SECRET="hush")
                           for rank in range(SIZE)])

    def by_meeting(self, what: str) -> str:
        """As mpirun starts the ranks of one host, without a master."""
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700, exist_ok=True)
        text = self.ended([
            self.start(WORLDS, what, OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=SIZE,
                       OMPI_COMM_WORLD_LOCAL_RANK=rank, OMPI_COMM_WORLD_LOCAL_SIZE=SIZE,
                       PMIX_NAMESPACE="worlds", XDG_RUNTIME_DIR=runtime) for rank in range(SIZE)])
        self.assertEqual(list(runtime.glob("hocket/*")), [], "files are left behind")
        return text

    def check(self, what: str) -> list[str]:
        texts = []
        for way in (self.by_launcher, self.by_master, self.by_file, self.by_meeting):
            with self.subTest(way.__name__):
                texts.append(way(what))
        return texts

    def test_one_after_the_other(self) -> None:
        self.check("sequence")

    def test_at_once(self) -> None:
        self.check("at-once")

    def test_worlds_end_in_any_order(self) -> None:
        self.check("leaving")

    def test_names_are_joined_in_any_order(self) -> None:
        self.check("names")

    def test_a_world_has_settings_of_its_own(self) -> None:
        self.check("settings")

    def test_ranks_meet_again_after_a_join_failed(self) -> None:
        for text in self.check("late"):
            self.assertIn("1 of 3 ranks is missing: 1", text)

    def test_a_world_that_others_do_not_join_is_named(self) -> None:
        for text in self.check("too-many"):
            self.assertIn("2 of 3 ranks of world 2 are missing: 1, 2", text)
            self.assertIn('2 of 3 ranks of world "loader" number 2 are missing: 1, 2', text)
            self.assertIn("hint: look at the output of those ranks: do all ranks join", text)

    def test_a_rank_that_ends_comes_to_no_more_worlds(self) -> None:
        """The launcher sees it end, and nobody waits for it."""
        started = time.monotonic()
        text = self.by_launcher("ending")
        self.assertLess(time.monotonic() - started, 20, text)
        told = re.findall(r"^\[(\d)\] .*rank 1 .*exited with status 0", text, re.M)
        self.assertEqual(sorted(told), ["0", "0", "2", "2"], text)


if __name__ == "__main__":
    HOCKET = sys.argv.pop(2)
    WORLDS = sys.argv.pop(1)
    unittest.main(verbosity=2)
