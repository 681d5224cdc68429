#!/usr/bin/env python3
"""A store of Hocket as one of torch, and torch's own TCPStore as a client of Hocket's server.

usage: store_test.py FOLDER HOCKET [TEST...]    in FOLDER is the package `hocket`; HOCKET is the program
"""

import datetime
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from launch import compile_beforehand, environment_of, free_port, mpirun, run_with_torch

run_with_torch()
FOLDER, HOCKET = sys.argv[1:3]
del sys.argv[1:3]
sys.path.insert(0, FOLDER)
os.environ |= {"HOCKET_SECRET": "of this test", "XDG_CACHE_HOME": f"{FOLDER}/cache"}

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import hocket.torch  # noqa: E402

TORCH = tuple(int(each) for each in torch.__version__.split(".")[:2])
HOST = "127.0.0.1"
SHORT = datetime.timedelta(milliseconds=100)
RANK = """
import datetime, os, sys, torch, torch.distributed as dist, hocket.torch
backend, method = sys.argv[1:]
known = {"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])} \
    if "RANK" in os.environ and method != "hocket://" else {}
dist.init_process_group(backend, init_method=method, timeout=datetime.timedelta(seconds=60), **known)
rank, size = dist.get_rank(), dist.get_world_size()
values = torch.full((3,), rank + 1.0)
dist.all_reduce(values)
assert values.tolist() == [size * (size + 1) / 2] * 3, values
group = dist.new_group(list(range(size)))
dist.barrier(group)
dist.destroy_process_group()
"""


class Operations:
    """What every store of torch can do. `open` makes another handle of the store."""

    queues = True

    def open(self) -> dist.Store:
        raise NotImplementedError

    def setUp(self) -> None:
        self.store = self.open()

    def test_values(self) -> None:
        self.store.set("key", "value")
        self.assertEqual(self.store.get("key"), b"value")
        self.store.set("key", b"other\0")
        self.assertEqual(self.open().get("key"), b"other\0")
        self.assertEqual(self.store.add("number", 3), 3)
        self.assertEqual(self.store.add("number", -5), -2)
        self.assertEqual(self.store.get("number"), b"-2")
        self.assertTrue(self.store.delete_key("key"))
        self.assertFalse(self.store.delete_key("key"))

    def test_compare_set(self) -> None:
        self.assertEqual(self.store.compare_set("key", "expected", "1"), b"expected")
        self.assertEqual(self.store.compare_set("key", "", "1"), b"1")
        self.assertEqual(self.store.compare_set("key", "wrong", "2"), b"1")
        self.assertEqual(self.store.compare_set("key", "1", "2"), b"2")
        self.assertEqual(self.store.get("key"), b"2")

    def test_count_of_keys(self) -> None:
        before = self.store.num_keys()
        for each in "abc":
            self.store.set(each, each)
        self.assertEqual(self.store.num_keys(), before + 3)
        self.store.delete_key("a")
        self.assertEqual(self.store.num_keys(), before + 2)

    def test_waiting(self) -> None:
        setting = self.open()
        timer = threading.Timer(0.1, lambda: [setting.set("b", "1"), setting.set("a", "1")])
        timer.start()
        self.store.wait(["a", "b", "a"])
        self.store.wait(["a"], SHORT)
        timer.join()

    def test_waiting_in_vain(self) -> None:
        with self.assertRaises(getattr(dist, "DistStoreError", RuntimeError)):
            self.store.wait(["never"], SHORT)
        # The answer to what was given up disturbs no other.
        self.assertEqual(self.store.add("number", 4), 4)
        self.open().set("never", "1")
        self.assertEqual(self.store.add("number", 1), 5)
        self.store.set_timeout(SHORT)
        with self.assertRaises(getattr(dist, "DistStoreError", RuntimeError)):
            self.store.get("absent")
        self.assertEqual(self.store.add("number", 5), 10)

    def test_under_a_prefix(self) -> None:
        part = dist.PrefixStore("outer", dist.PrefixStore("inner", self.store))
        part.set("key", "value")
        self.assertEqual(self.store.get("inner/outer/key"), b"value")
        self.assertEqual(part.add("number", 2), 2)
        self.assertEqual(part.compare_set("key", "value", "other"), b"other")
        part.wait(["key", "number"], SHORT)
        self.assertTrue(part.delete_key("key"))
        self.assertGreaterEqual(part.num_keys(), 1)

    def test_several_keys(self) -> None:
        if TORCH < (2, 1):
            self.skipTest("torch has no multi_get before 2.1")
        self.store.multi_set(["a", "b"], ["1", "2"])
        self.assertEqual(self.store.multi_get(["b", "a"]), [b"2", b"1"])
        self.store.append("a", "3")
        self.assertEqual(self.store.get("a"), b"13")
        self.assertTrue(self.store.check(["a", "b"]))
        self.assertFalse(self.store.check(["a", "absent"]))
        self.assertTrue(self.store.has_extended_api())
        part = dist.PrefixStore("part", self.store)
        part.multi_set(["a", "b"], ["1", "2"])
        self.assertEqual(part.multi_get(["b", "a"]), [b"2", b"1"])

    def test_queues(self) -> None:
        if not hasattr(dist.Store, "queue_push") or not self.queues:
            self.skipTest("this torch has no queues in its stores")
        self.store.queue_push("queue", "a")
        self.store.queue_push("queue", "b")
        self.assertEqual(self.store.queue_len("queue"), 2)
        self.assertEqual(self.store.queue_pop("queue"), b"a")
        self.assertEqual(self.store.queue_pop("queue"), b"b")
        with self.assertRaises(dist.QueueEmptyError):
            self.store.queue_pop("queue", block=False)
        pushing = self.open()
        timer = threading.Timer(0.1, lambda: pushing.queue_push("queue", "c"))
        timer.start()
        self.assertEqual(self.store.queue_pop("queue"), b"c")
        timer.join()

    def test_list_of_keys(self) -> None:
        if not hasattr(dist.Store, "list_keys"):
            self.skipTest("this torch can't list the keys of a store")
        self.store.set("key", "value")
        self.assertIn("key", "".join(self.store.list_keys()))

    def test_large_values(self) -> None:
        value = bytes(range(256)) * (4 << 12)
        self.store.set("key", value)
        self.assertEqual(self.open().get("key"), value)

    def test_many_at_once(self) -> None:
        def work(number: int) -> None:
            store = self.open()
            for _ in range(50):
                store.add("sum", 1)
            store.set(f"done {number}", "1")
            store.wait([f"done {each}" for each in range(8)])
            found.append(store.get("sum"))

        found: list[bytes] = []
        threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [b"400"] * 8)


class OurStore(Operations, unittest.TestCase):
    def setUp(self) -> None:
        self.server = hocket.StoreServer()
        super().setUp()

    def open(self) -> dist.Store:
        return hocket.torch.Store(hocket.Store.open(f"tcp://{HOST}:{self.server.port}"))

    def test_a_bad_add(self) -> None:
        self.store.set("key", "no number")
        with self.assertRaisesRegex(Exception, "no number"):
            self.store.add("key", 1)
        self.assertEqual(self.store.get("key"), b"no number")

    def test_a_key_that_does_not_come_is_a_timeout_of_hocket_too(self) -> None:
        with self.assertRaises(hocket.Timeout) as told:
            self.store.wait(["never"], SHORT)
        self.assertEqual(told.exception.status, "timeout")

    def test_a_wait_blocks_no_other_thread(self) -> None:
        waiting = threading.Thread(target=self.store.wait, args=[["key"]])
        waiting.start()
        self.store.set("key", "1")  # or both would wait for good
        waiting.join(10)
        self.assertFalse(waiting.is_alive())


class TheirClient(Operations, unittest.TestCase):
    def setUp(self) -> None:
        self.server = hocket.StoreServer(serves_torch=True)
        super().setUp()

    def open(self) -> dist.Store:
        return dist.TCPStore(HOST, self.server.port, None, False, wait_for_workers=False)

    def test_beside_ours(self) -> None:
        ours = hocket.Store.open(f"tcp://{HOST}:{self.server.port}")
        self.store.set("key", "value")
        self.assertEqual(ours.get("/key"), b"value")

    def test_counted_workers(self) -> None:
        made = [dist.TCPStore(HOST, self.server.port, 2, False) for _ in range(2)]
        self.assertEqual(made[0].num_keys(), 1)

    def test_a_bad_add(self) -> None:
        self.store.set("key", "no number")
        with self.assertRaises(RuntimeError):
            self.store.add("key", 1)
        self.assertEqual(self.open().get("key"), b"no number")


class OurClient(unittest.TestCase):
    """A client of Hocket at a server of torch."""

    def setUp(self) -> None:
        server = {"use_libuv": self.use_libuv} if TORCH >= (2, 2) else {}
        self.theirs = dist.TCPStore(HOST, 0, None, True, wait_for_workers=False, **server)
        self.store = hocket.Store.open(f"torch://{HOST}:{self.theirs.port}", timeout=20)

    use_libuv = False

    def test_values(self) -> None:
        self.store.set("key", "value")
        self.assertEqual(self.theirs.get("key"), b"value")
        self.theirs.set("other", "theirs")
        self.assertEqual(self.store.get("other"), b"theirs")
        self.assertEqual(self.store.add("number", 7), 7)
        self.assertEqual(self.theirs.add("number", 1), 8)
        self.assertEqual(self.store.multi_get(["number", "key"]), [b"8", b"value"])
        self.store.append("key", " more")
        self.assertEqual(self.theirs.get("key"), b"value more")
        self.assertEqual(self.store.num_keys(), self.theirs.num_keys())
        self.assertTrue(self.store.delete_key("key"))
        self.assertFalse(self.store.check(["key"]))

    def test_compare_set(self) -> None:
        self.assertIsNone(self.store.compare_set("key", "expected", "1"))
        self.assertIsNone(self.store.compare_set("key", "same", "same"))
        self.assertEqual(self.store.compare_set("key", "", "1"), b"1")
        self.assertEqual(self.store.compare_set("key", "wrong", "2"), b"1")
        self.assertEqual(self.store.compare_set("key", "1", "2"), b"2")

    def test_waiting(self) -> None:
        timer = threading.Timer(0.1, lambda: self.theirs.compare_set("key", "", "1"))
        timer.start()
        self.store.wait(["key"])
        timer.join()
        with self.assertRaises(hocket.Timeout):
            self.store.get("absent", timeout=0.1)

    def test_a_bad_add(self) -> None:
        self.store.set("key", "no number")
        with self.assertRaisesRegex(hocket.PeerLost, "no number"):
            self.store.add("key", 1)
        self.assertEqual(self.store.get("key"), b"no number")

    def test_no_server(self) -> None:
        with self.assertRaisesRegex(hocket.Timeout, "no TCPStore"):
            hocket.Store.open(f"torch://{HOST}:{free_port()}", timeout=0.3)

    def test_a_world_meets_in_it(self) -> None:
        url = f"torch://{HOST}:{self.theirs.port}"
        script = ("import hocket, sys; world = hocket.join(store=hocket.Store.open(sys.argv[1]), "
                  "rank=int(sys.argv[2]), size=2); world.barrier()")
        ranks = [subprocess.Popen([sys.executable, "-c", script, url, str(rank)],
                                  env={**os.environ, "PYTHONPATH": FOLDER}) for rank in range(2)]
        self.assertEqual([rank.wait(60) for rank in ranks], [0, 0])


@unittest.skipIf(TORCH < (2, 2), "this torch has no server of libuv")
class OurClientAtLibuv(OurClient):
    use_libuv = True


class Groups(unittest.TestCase):
    def run_ranks(self, backend: str, method: str, size: int = 2, **environment: str) -> None:
        environment |= {"PYTHONPATH": FOLDER, "WORLD_SIZE": str(size)}
        ranks = [subprocess.Popen([sys.executable, "-c", RANK, backend, method],
                                  env={**os.environ, **environment, "RANK": str(rank)})
                 for rank in range(size)]
        try:
            self.assertEqual([rank.wait(100) for rank in ranks], [0] * size)
        finally:
            for rank in ranks:
                rank.kill()

    def test_over_our_store(self) -> None:
        for backend in ("gloo", "hocket"):
            self.run_ranks(backend, f"hocket://{HOST}:{free_port()}")

    def test_over_our_server(self) -> None:
        # With this variable, no rank of torch serves a store.
        agent = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0",
                 "MASTER_ADDR": HOST}
        for backend in ("gloo", "hocket"):
            server = hocket.StoreServer(serves_torch=True)
            self.run_ranks(backend, "env://", MASTER_PORT=str(server.port), **agent)

    def test_torchrun(self) -> None:
        if TORCH < (2, 0):
            self.skipTest("torchrun of torch 1.13 does not run on this Python")
        server = hocket.StoreServer(serves_torch=True)
        script = Path(FOLDER) / "cache/torchrun_rank.py"
        script.write_text(RANK)
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2",
             "--rdzv-backend=c10d", f"--rdzv-endpoint={HOST}:{server.port}", "--rdzv-id=job",
             "--rdzv-conf=is_host=0", script, "gloo", "env://"],
            env={**os.environ, "PYTHONPATH": FOLDER}, timeout=200, check=False)
        self.assertEqual(done.returncode, 0)

    def test_started_by_anything(self) -> None:
        """The launcher says who and where."""
        script = Path(FOLDER) / "cache/launched_rank.py"
        script.write_text(RANK)
        python = [sys.executable]
        launchers = [[HOCKET, "run", "-n", "2", "--", *python]]
        mpis = (mpirun("openmpi", "--allow-run-as-root", "--oversubscribe"), mpirun("mpich"))
        launchers += [[*mpi, *python] for mpi in mpis if mpi is not None]
        if TORCH >= (2, 0):
            port = str(free_port())
            launchers += [[*python, "-m", f"torch.distributed.{name}", "--nproc-per-node=2", *words]
                          for name, *words in (("run", "--standalone"), ("run", "--master-port", port),
                                               ("launch", "--use-env", "--master-port", port))]
        for launcher in launchers:
            for backend in ("gloo", "hocket"):
                done = subprocess.run([*launcher, script, backend, "hocket://"],
                                      env={**os.environ, "PYTHONPATH": FOLDER}, timeout=100, check=False)
                self.assertEqual(done.returncode, 0, (launcher, backend))

    def test_in_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.run_ranks("gloo", f"hocket://{folder}/store")

    def test_wrong_urls(self) -> None:
        with self.assertRaisesRegex(ValueError, "hocket://HOST:PORT"):
            dist.init_process_group("gloo", init_method="hocket://", rank=0, world_size=2)
        with self.assertRaisesRegex(hocket.InvalidArgument, "no port"):
            dist.init_process_group("gloo", init_method="hocket://127.0.0.1?rank=0&world_size=1")


if __name__ == "__main__":
    print(f"torch {torch.__version__}", flush=True)
    compile_beforehand(environment_of(FOLDER))
    unittest.main(verbosity=2)
