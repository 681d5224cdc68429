#!/usr/bin/env python3
"""Ranks that fork: their death is noticed though children live, and children break nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import unittest

from surroundings import environment, free_port

FORKS = ""  # the program: the first argument; the second is SANITIZER
PATIENCE_S = 120  # for what takes a moment on a machine that has nothing else to do
SOON_S = 10  # for a death to be noticed, on a machine under load; else it takes 60 s

SANITIZER = sys.argv[2] if len(sys.argv) > 2 else "none"  # as Meson's b_sanitize has it

children_have_threads = unittest.skipIf(
    SANITIZER == "thread", "the thread sanitizer allows no threads in a child of fork")
forks_while_threads_allocate = unittest.skipIf(
    SANITIZER != "none", "the locks of the sanitizer's allocator do not survive a fork")


class Forks(unittest.TestCase):
    def start(self, what: str, **variables: str) -> list[subprocess.Popen[str]]:
        port = free_port()
        ranks = []
        for rank in range(2):
            ranks.append(subprocess.Popen(
                [FORKS, what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                env=environment(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                                HOCKET_STORE_TIMEOUT="60s", **variables)))
            self.addCleanup(ranks[-1].stdout.close)
            self.addCleanup(ranks[-1].wait)
            self.addCleanup(ranks[-1].kill)
        return ranks

    def check(self, what: str, **variables: str) -> None:
        for each in self.start(what, **variables):
            text, _ = each.communicate(timeout=PATIENCE_S)
            self.assertEqual(each.returncode, 0, text)

    def test_the_death_of_a_rank_is_noticed_though_its_child_lives(self) -> None:
        dying, survivor = self.start("orphan")
        line = dying.stdout.readline()
        self.assertRegex(line, r"^child \d+$")
        child = int(line.split()[1])
        self.addCleanup(os.kill, child, signal.SIGKILL)
        begin = time.monotonic()
        dying.kill()
        text, _ = survivor.communicate(timeout=PATIENCE_S)
        took = time.monotonic() - begin
        os.kill(child, 0)  # it lives still
        self.assertIn("lost: ", text)
        self.assertLess(took, SOON_S)

    @children_have_threads
    def test_calls_in_a_child_fail_and_a_world_of_its_own_works(self) -> None:
        self.check("calls")

    def test_a_child_that_ends_leaves_its_parent_at_work(self) -> None:
        # What Asio keeps for a thread is on that thread's stack, which a child does not have. The
        # sanitizer would call it a leak.
        options = os.environ.get("ASAN_OPTIONS", "")
        self.check("end", ASAN_OPTIONS=f"{options}:detect_leaks=0")

    def test_another_program_gets_no_descriptor(self) -> None:
        self.check("exec")

    @forks_while_threads_allocate
    def test_forks_while_threads_are_in_operations(self) -> None:
        self.check("often")

    @children_have_threads
    def test_a_store_and_its_server(self) -> None:
        ran = subprocess.run([FORKS, "store"], timeout=PATIENCE_S, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout)


if __name__ == "__main__":
    FORKS = sys.argv.pop(1)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
