#!/usr/bin/env python3
"""A rank that ends right after isend: its messages arrive, and it ends although nobody takes them.

usage: leaving_test.py FOLDER [TEST...]    in FOLDER is the package `hocket`
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass

from launch import compile_beforehand, environment_of, run_with_torch

run_with_torch()
FOLDER = sys.argv.pop(1)
ENVIRONMENT = environment_of(FOLDER, HOCKET_SECRET="of this test", OMP_NUM_THREADS="1")
PLAIN = {"CXX": "", "PATH": "", "XDG_CACHE_HOME": f"{FOLDER}/no-cache"}

BEGIN = """
import datetime, multiprocessing, sys, time
import torch, torch.distributed as dist, hocket.torch
import hocket.torch.leaving
store, rank, seconds, at_most = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
hocket.torch.leaving._AT_MOST_S = at_most
def join():
    dist.init_process_group("hocket", init_method=f"file://{store}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=100))
    dist.barrier()
def send(counts=(1, 100_000, 4_000_000)):
    join()
    global kept
    kept = []
    for count in counts:
        work = dist.isend(torch.full((count,), float(count)), 1 - rank)
        if count == 100_000: kept.append(work)
def receive(counts=(1, 100_000, 4_000_000)):
    join()
    time.sleep(seconds)
    for count in counts:
        dist.recv(values := torch.zeros(count), 0)
        assert values.unique().tolist() == [float(count)], (count, values)
    print("received")
def in_child(function):
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
SEND_TO_EACH_OTHER = "send((4_000_000,))"
WITH_A_FUTURE = """
join()
future = dist.isend(torch.full((4_000_000,), 4e6), 1).get_future()
"""
WAITS = """
join()
begin = time.monotonic()
try:
    dist.recv(torch.zeros(1), 0, tag=1)
except Exception as error:
    print(error)
print("after a long time" if time.monotonic() - begin > 20 else "soon")
"""


@dataclass
class Outcome:
    status: int
    output: str
    errors: str


class Leaving(unittest.TestCase):
    def start(self, folder: str, rank: int, script: str, sleep_s: float, at_most_s: float,
              environment: dict[str, str]) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", BEGIN + script, f"{folder}/store", str(rank), str(sleep_s), str(at_most_s)],
            env=ENVIRONMENT | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

    def run_ranks(self, first: str, second: str, sleep_s: float = 1.5, at_most_s: float = 60,
                  **environment: str) -> list[Outcome]:
        with tempfile.TemporaryDirectory() as folder:
            ranks = [self.start(folder, rank, script, sleep_s, at_most_s, environment)
                     for rank, script in enumerate((first, second))]
            try:
                # The second may need what the first says, but not the other way round.
                said = [ranks[1].communicate(timeout=150), ranks[0].communicate(timeout=150)][::-1]
            finally:
                for rank in ranks:
                    rank.kill()
        return [Outcome(rank.returncode, *each) for rank, each in zip(ranks, said)]

    def check_arrives(self, sender: str, receiver: str = "receive()", sleep_s: float = 1.5,
                      **environment: str) -> Outcome:
        """Returns what the sender said."""
        outcomes = self.run_ranks(sender, receiver, sleep_s, **environment)
        self.assertEqual([(each.status, each.output) for each in outcomes], [(0, ""), (0, "received\n")], outcomes)
        return outcomes[0]

    def test_messages_arrive(self) -> None:
        self.check_arrives("send()")

    def test_a_small_message(self) -> None:
        """It has ended before it is received."""
        self.check_arrives("send((1,))", "receive((1,))")

    def test_of_a_child(self) -> None:
        for counts in ("", "(1,)"):
            self.check_arrives(f"in_child(lambda: send({counts}))", f"receive({counts})")

    def test_of_a_group_that_is_destroyed(self) -> None:
        self.check_arrives("send(); dist.destroy_process_group()")

    def test_with_a_future(self) -> None:
        self.check_arrives(WITH_A_FUTURE, "receive((4_000_000,))")

    def test_without_a_compiler(self) -> None:
        self.check_arrives("send()", **PLAIN)
        self.check_arrives("in_child(lambda: send((1,)))", "receive((1,))", **PLAIN)

    def test_it_says_what_it_waits_for(self) -> None:
        sender = self.check_arrives("send()", sleep_s=12)
        self.assertRegex(sender.errors, r"waits for \d messages? that other ranks have not taken yet, at most 60")

    def test_nobody_takes_it(self) -> None:
        for environment in ({}, PLAIN):
            begin = time.monotonic()
            outcomes = self.run_ranks(SEND_TO_EACH_OTHER, SEND_TO_EACH_OTHER, at_most_s=2, **environment)
            self.assertLess(time.monotonic() - begin, 40)
            self.assertEqual([each.status for each in outcomes], [0, 0], outcomes)
            # Of whoever ends last, the send has failed by then.
            said = [each.errors for each in outcomes if each.errors]
            self.assertTrue(said and all("ends without 1 message" in each for each in said), outcomes)

    def test_after_an_exception(self) -> None:
        """The others learn of it soon."""
        sender, receiver = self.run_ranks("send(); raise RuntimeError('of this test')", WAITS)
        self.assertEqual(sender.status, 1)
        self.assertIn("of this test", sender.errors)
        self.assertIn("rank 0", receiver.output)
        self.assertIn("soon", receiver.output)

    def test_ctrl_c(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            sender, receiver = (self.start(folder, rank, script, 100, 60, {})
                                for rank, script in enumerate(("send(); print(flush=True)", "receive()")))
            try:
                sender.stdout.readline()
                time.sleep(1)
                sender.send_signal(signal.SIGINT)
                begin = time.monotonic()
                _, errors = sender.communicate(timeout=100)
                self.assertLess(time.monotonic() - begin, 20)
                self.assertIn("does not wait any longer", errors)
            finally:
                sender.kill()
                receiver.kill()
                receiver.communicate()


if __name__ == "__main__":
    compile_beforehand(ENVIRONMENT)
    unittest.main(verbosity=2)
