#!/usr/bin/env python3
"""A rank that ends right after isend: its messages arrive, and it ends although nobody takes them.

usage: leaving_test.py FOLDER [TEST...]    in FOLDER is the package `hocket`
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import unittest

from launch import run_with_torch

run_with_torch()
FOLDER = sys.argv.pop(1)
ENVIRONMENT = {**os.environ, "PYTHONPATH": FOLDER, "XDG_CACHE_HOME": f"{FOLDER}/cache",
               "HOCKET_SECRET": "of this test", "OMP_NUM_THREADS": "1"}
PLAIN = {"CXX": "", "PATH": ""}

BEGIN = """
import datetime, multiprocessing, sys, time, warnings
import torch, torch.distributed as dist, hocket.torch
warnings.simplefilter("ignore")
store, rank, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
def join():
    dist.init_process_group("hocket", init_method=f"file://{store}", rank=rank, world_size=2,
                            timeout=datetime.timedelta(seconds=60))
    dist.barrier()
"""
SENDS = """
def send():
    join()
    dist.isend(torch.full((1,), 7.0), 1)
    global kept
    kept = dist.isend(torch.full((100_000,), 8.0), 1)
    dist.isend(torch.full((4_000_000,), 9.0), 1)
"""
SENDER = SENDS + "send()\n"
LEAVES_ITS_GROUP = SENDER + "dist.destroy_process_group()\n"
FORKED = SENDS + """
child = multiprocessing.get_context("fork").Process(target=send)
child.start()
child.join()
sys.exit(child.exitcode)
"""
FAILS = SENDER + "raise RuntimeError('of this test')\n"
RECEIVER = """
join()
time.sleep(seconds)
for count, value in ((1, 7.0), (100_000, 8.0), (4_000_000, 9.0)):
    dist.recv(values := torch.zeros(count), 0)
    assert values.unique().tolist() == [value], (count, values)
print("received")
"""
WAITS = """
join()
try:
    dist.recv(torch.zeros(1), 0, tag=1)
except Exception as error:
    print(error)
"""


class Leaving(unittest.TestCase):
    def run_ranks(self, sender: str, receiver: str, receiver_sleeps_s: float = 1.5,
                  **environment: str) -> tuple[int, str, str]:
        """Returns the sender's status, what it printed, and what the receiver did. The receiver has to
        succeed."""
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([sys.executable, "-c", BEGIN + script, f"{folder}/store", str(rank),
                                       str(receiver_sleeps_s)],
                                      env=ENVIRONMENT | environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                     for rank, script in enumerate((sender, receiver))]
            try:
                received, receiver_says = ranks[1].communicate(timeout=100)
                _, sender_says = ranks[0].communicate(timeout=100)
            finally:
                for rank in ranks:
                    rank.kill()
        self.assertEqual(ranks[1].returncode, 0, receiver_says + sender_says)
        return ranks[0].returncode, sender_says, received

    def check_arrives(self, sender: str, **environment: str) -> None:
        self.assertEqual(self.run_ranks(sender, RECEIVER, **environment), (0, "", "received\n"))

    def test_messages_arrive(self) -> None:
        self.check_arrives(SENDER)

    def test_without_a_compiler(self) -> None:
        self.check_arrives(SENDER, **PLAIN)

    def test_of_a_group_that_is_destroyed(self) -> None:
        self.check_arrives(LEAVES_ITS_GROUP)

    def test_of_a_child(self) -> None:
        self.check_arrives(FORKED)

    def test_it_says_what_it_waits_for(self) -> None:
        status, says, received = self.run_ranks(SENDER, RECEIVER, receiver_sleeps_s=7)
        self.assertEqual((status, received), (0, "received\n"))
        self.assertIn("this process ends once its messages have been received", says)

    def test_after_an_exception(self) -> None:
        """The others learn of it soon."""
        begin = time.monotonic()
        status, says, received = self.run_ranks(FAILS, WAITS)
        self.assertEqual(status, 1)
        self.assertIn("of this test", says)
        self.assertIn("rank 0", received)
        self.assertLess(time.monotonic() - begin, 30)


if __name__ == "__main__":
    # Beforehand, as it may take longer than ranks wait.
    subprocess.run([sys.executable, "-m", "hocket.torch"], env=ENVIRONMENT, check=True)
    unittest.main()
