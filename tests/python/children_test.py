#!/usr/bin/env python3
"""A rank in a child that multiprocessing forks, or one that ends by os._exit(): its end is no death.

usage: children_test.py FOLDER    in FOLDER is the package `hocket`
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

FOLDER = sys.argv.pop(1)
RANKS = 3

RANK = """
import array, multiprocessing, os, sys, time

place, rank, end = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if end != "child that imports":
    import hocket

def work():
    global world
    import hocket
    world = hocket.join(place)
    pids = array.array("q", [os.getpid()])
    world.broadcast(pids)
    values = array.array("f", [rank])
    if rank == 0:
        world.send(values, 1)
    if rank == 1:
        world.recv(values, 2)  # while rank 0 ends
        assert values[0] == 2, values
        world.recv(values, 0)
        assert values[0] == 0, values
    if rank == 2:
        while os.path.exists(f"/proc/{pids[0]}"):
            time.sleep(0.01)
        time.sleep(0.5)  # its death would be told by now
        world.send(values, 1)

def work_in_thread():
    import threading
    threading.Thread(target=lambda: (time.sleep(1), work())).start()

if rank != 0:
    work()
elif end == "_exit":
    work()
    hocket.leave_all_worlds()
    os._exit(0)
else:
    target = work_in_thread if end == "child with a thread" else work
    child = multiprocessing.get_context("fork").Process(target=target)
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""


class Children(unittest.TestCase):
    def check(self, end: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen(
                [sys.executable, "-c", RANK, f"file://{folder}/store?rank={rank}&size={RANKS}", str(rank), end],
                env={**os.environ, "PYTHONPATH": FOLDER, "HOCKET_SECRET": "of this test"},
                stderr=subprocess.PIPE, text=True) for rank in range(RANKS)]
            try:
                said = [rank.communicate(timeout=60)[1] for rank in ranks]
            finally:
                for rank in ranks:
                    rank.kill()
        self.assertEqual([rank.returncode for rank in ranks], [0] * RANKS, "\n".join(said))

    def test_of_multiprocessing(self) -> None:
        self.check("child")

    def test_that_imports_by_itself(self) -> None:
        self.check("child that imports")

    def test_whose_thread_ends_last(self) -> None:
        self.check("child with a thread")

    def test_exit_at_once(self) -> None:
        self.check("_exit")


if __name__ == "__main__":
    unittest.main(verbosity=2)
