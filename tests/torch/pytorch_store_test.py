#!/usr/bin/env python3
"""PyTorch's own tests of its TCPStore pass where Hocket's stores take its place: by API, a
hocket.torch.Store; by wire, a TCPStore that is a client of Hocket's server.

usage: pytorch_store_test.py FOLDER    in FOLDER is the package `hocket`

The tests are test/distributed/test_store.py of PyTorch's sources, which no package of torch has:
PYTORCH_TESTS names the folder in which it is, of the version of torch that is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest
from datetime import timedelta
from pathlib import Path

from launch import Result, run_with_torch, stand_in_for_expecttest

SUITE = "test_store.py"
TESTS = Path(os.environ.get("PYTORCH_TESTS", ""), SUITE)
if "PYTORCH_TESTS" not in os.environ or not TESTS.exists():
    print(f"# skipped: set PYTORCH_TESTS to the folder of PyTorch's sources that has {SUITE}")
    sys.exit(77)
run_with_torch()

TIMEOUT_S = 300
# Tests that do not pass, and why.
OF_WORDS = "it wants the words of torch's own"
EXPLAINED = {
    "wire": {
        "test_address_already_in_use": OF_WORDS, "test_agent_store": OF_WORDS, "test_repr": OF_WORDS,
        "test_store_timeout_on_missing_clients": "only torch's own server waits for them",
        "test_take_over_listen_socket": "only torch's own server takes one over",
    },
}
EXPLAINED["api"] = EXPLAINED["wire"] | {
    "test_tcp_store_timeout_set": OF_WORDS, "test_tcp_store_timeout_doest_break_client": OF_WORDS,
    "test_with_url_param": "it wants torch's class", "test_with_env_var": "it wants torch's class",
} | {
    f"PrefixTCPStoreTest.test_queues{which}": "torch's PrefixStore asks a store from outside for no queue"
    for which in ("", "_bidirectional", "_nonblocking", "_timeout")
}
# Of these some part uses a TCPStore.
OF_TCP = "TCP", "PrefixStore", "MultiThreadedWait", "Timeout", "RendezvousEnv"


def replace_by_api() -> None:
    import torch.distributed as dist

    import hocket.torch

    class TCPStore(hocket.torch.Store):
        """With the parameters of torch's, and its key that counts workers."""

        def __init__(self, host_name: str, port: int = 0, world_size: int | None = None, is_master: bool = False,
                     timeout: timedelta = timedelta(minutes=5), **words: bool) -> None:
            if world_size == 0:
                raise ValueError("TCPStore world size cannot be 0")
            self.host, self.port = host_name, serve(port, **words) if is_master else port
            self.libuvBackend = words.get("use_libuv", True)  # noqa: N815
            super().__init__(hocket.Store.open(f"tcp://127.0.0.1:{self.port}", timeout=timeout.total_seconds()))
            self.set_timeout(timeout)
            if world_size:
                self.add("init/", 1)

    dist.TCPStore = TCPStore


def replace_by_wire() -> None:
    import torch.distributed as dist

    theirs = dist.TCPStore

    class TCPStore(theirs):
        def __init__(self, host_name: str, port: int = 0, world_size: int | None = None, is_master: bool = False,
                     timeout: timedelta = timedelta(minutes=5), wait_for_workers: bool = True,
                     **words: bool) -> None:
            place = serve(port, serves_torch=True, **words) if is_master else port
            uv = {word: value for word, value in words.items() if word == "use_libuv"}
            super().__init__(host_name, place, world_size, False, timeout, wait_for_workers, **uv)

    dist.TCPStore = TCPStore


_servers: dict = {}


def serve(port: int, *, serves_torch: bool = False, multi_tenant: bool = False, **_: bool) -> int:
    import hocket
    if not (multi_tenant and port in _servers):
        server = hocket.StoreServer("127.0.0.1", port, serves_torch=serves_torch)
        port = server.port
        _servers[port] = server
    return port


def run_suite(way: str) -> None:
    """Its last line is JSON: how many passed, which failed and which were skipped, with the reason. The way
    `torch` replaces nothing."""
    import torch
    stand_in_for_expecttest()
    {"api": replace_by_api, "wire": replace_by_wire, "torch": lambda: None}[way]()
    sys.modules["torch.distributed.rendezvous"].TCPStore = torch.distributed.TCPStore
    sys.path.insert(0, str(TESTS.parent))
    import test_store
    chosen = [each for name, each in vars(test_store).items() if any(part in name for part in OF_TCP)
              and isinstance(each, type) and issubclass(each, unittest.TestCase)]
    ran = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(
        unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, chosen)))
    bad = {test.id(): text.strip().splitlines()[-1] for test, text in (*ran.failures, *ran.errors)}
    skipped = {test.id(): why for test, why in ran.skipped}
    print(json.dumps({"passed": ran.passed, "failed": bad, "skipped": skipped}))


class PyTorchStores(unittest.TestCase):
    def run_way(self, way: str) -> tuple[dict, str]:
        done = subprocess.run([sys.executable, __file__, FOLDER, way], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, check=False,
                              env={**os.environ, "PYTHONPATH": FOLDER, "XDG_CACHE_HOME": f"{FOLDER}/cache",
                                   "HOCKET_SECRET": "of this test"})
        self.assertEqual(done.returncode, 0, done.stdout)
        result = json.loads(done.stdout.splitlines()[-1])
        print(f"{way}: {result['passed']} passed, {len(result['failed'])} failed, "
              f"{len(result['skipped'])} skipped")
        return result, done.stdout

    def test_each_way(self) -> None:
        theirs, _ = self.run_way("torch")
        self.assertGreater(theirs["passed"], 10)
        not_theirs = theirs["failed"].keys() | theirs["skipped"].keys()
        for way, explained in EXPLAINED.items():
            with self.subTest(way):
                ours, text = self.run_way(way)
                missed = {name for name in ours["failed"].keys() | ours["skipped"].keys()
                          if name not in not_theirs and not name.endswith(tuple(explained))}
                self.assertEqual(missed, set(), text)


if __name__ == "__main__":
    FOLDER = sys.argv.pop(1)
    if len(sys.argv) > 1:
        run_suite(sys.argv[1])
    else:
        import torch
        print(f"torch {torch.__version__}", flush=True)
        unittest.main(argv=sys.argv[:1], verbosity=2)
