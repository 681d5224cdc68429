#!/usr/bin/env python3
"""Stores and worlds over TLS, as the HOCKET_TLS variables say, and what can be seen on the wire."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
import unittest
from contextlib import suppress

HOCKET = ""  # the program: the first argument
JOIN = ""  # joins a world: the second
SECRET = "known to the tests alone"
VALUE = "a value that nobody else may read"
WAIT_S = 60  # for what should take no time, on a machine that is busy
FOREIGN = re.compile(r"HOCKET_|OMPI_|PMI|MPI_|SLURM_|TORCHELASTIC_|MASTER_|LOCAL_|RANK$|WORLD_SIZE$")


def environment(**variables: object) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if not FOREIGN.match(name)}
    return {**inherited, "HOCKET_SECRET": SECRET,
            **{name: str(value) for name, value in variables.items()}}


def run(*command: str, **variables: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment(**variables), capture_output=True, text=True,
                          timeout=WAIT_S, check=False)


class Relay:
    """Stands between clients and a server, passes all on, and writes down what it sees."""

    def __init__(self, host: str, port: int) -> None:
        self.there = (host, port)
        self.seen = bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.at = "127.0.0.1:{}".format(self.listener.getsockname()[1])
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.join, args=(client,), daemon=True).start()

    def join(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.there, timeout=WAIT_S) as server:
            back = threading.Thread(target=self.carry, args=(server, client), daemon=True)
            back.start()
            self.carry(client, server)
            back.join()

    def carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                self.seen += piece
                sink.sendall(piece)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        with self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)  # or accept() would not hear of it


class Case(unittest.TestCase):
    def serve(self, **variables: object) -> str:
        server = subprocess.Popen([HOCKET, "store", "serve", "--listen", "127.0.0.1:0"],
                                  env=environment(**variables), stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.communicate, timeout=WAIT_S)
        self.addCleanup(server.kill)
        assert server.stdout
        told = server.stdout.readline()
        found = re.match(r"serving a store at (\S+) with a secret( over TLS)?\n", told)
        self.assertIsNotNone(found, told)
        self.assertEqual(bool(found[2]), variables.get("HOCKET_TLS", "off") != "off")
        return found[1]

    def relay(self, at: str) -> Relay:
        host, port = at.rsplit(":", 1)
        relay = Relay(host, int(port))
        self.addCleanup(relay.close)
        return relay

    def answer(self, at: str, *words: str, **variables: object) -> str:
        ran = run(HOCKET, "store", "--at", at, *words, **variables)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout

    def refusal(self, at: str, **variables: object) -> str:
        start = time.monotonic()
        ran = run(HOCKET, "store", "--at", at, "--timeout", "50s", "ping", **variables)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertNotIn(SECRET, ran.stderr)
        return ran.stderr


class Store(Case):
    def seen_of_a_value(self, **variables: object) -> bytes:
        relay = self.relay(self.serve(**variables))
        self.answer(relay.at, "set", "a key of ours", VALUE, **variables)
        self.assertEqual(self.answer(relay.at, "get", "a key of ours", **variables), VALUE + "\n")
        return bytes(relay.seen)

    def test_the_wire_shows_nothing_of_a_value(self) -> None:
        seen = self.seen_of_a_value(HOCKET_TLS="psk")
        self.assertGreater(len(seen), 2 * len(VALUE))
        for words in (VALUE, "a key of ours", SECRET):
            self.assertNotIn(words.encode(), seen)

    def test_without_tls_it_does(self) -> None:
        seen = self.seen_of_a_value()
        self.assertIn(VALUE.encode(), seen)  # so that the test above can fail
        self.assertNotIn(SECRET.encode(), seen)

    def test_one_side_alone_is_told_at_once(self) -> None:
        self.assertIn("the server asks for TLS", self.refusal(self.serve(HOCKET_TLS="psk")))
        told = self.refusal(self.serve(), HOCKET_TLS="psk")
        self.assertIn("the server speaks to us without TLS", told)
        self.assertIn("hint: ", told)

    def test_another_secret_is_refused(self) -> None:
        at = self.serve(HOCKET_TLS="psk")
        told = self.refusal(at, HOCKET_TLS="psk", HOCKET_SECRET="wrong")
        self.assertIn("permission denied", told)
        self.assertIn("the same secret", told)

    def test_what_cannot_be_is_said(self) -> None:
        for variables, told in (({"HOCKET_TLS": "psk", "HOCKET_SECRET": ""}, "needs a secret"),
                                ({"HOCKET_TLS": "on"}, "none of off, psk, certificate"),
                                ({"HOCKET_TLS": "certificate"}, "HOCKET_TLS_CERTIFICATE_FILE")):
            for words in (["serve", "--listen", "127.0.0.1:0"], ["--at", "127.0.0.1:1", "ping"]):
                ran = run(HOCKET, "store", *words, **variables)
                self.assertEqual(ran.returncode, 1)
                self.assertIn(told, ran.stderr)


class World(Case):
    def start(self, rank: int, port: int, **variables: object) -> subprocess.Popen[str]:
        place = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                 "HOCKET_STORE_TIMEOUT": "50s"}
        process = subprocess.Popen([JOIN], env=environment(**{**place, **variables}),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.communicate, timeout=WAIT_S)
        self.addCleanup(process.kill)
        return process

    def free_port(self) -> int:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            return probe.getsockname()[1]

    def test_ranks_meet_over_tls(self) -> None:
        port = self.free_port()
        relay = self.relay(f"127.0.0.1:{port}")
        ranks = [self.start(0, port, HOCKET_TLS="psk"),
                 self.start(1, int(relay.at.rsplit(":", 1)[1]), HOCKET_TLS="psk")]
        for rank, process in enumerate(ranks):
            text, _ = process.communicate(timeout=WAIT_S)
            self.assertEqual(process.returncode, 0, text)
            self.assertIn(f"rank={rank} size=2", text)
        self.assertGreater(len(relay.seen), 100)
        self.assertNotIn(b"world/", relay.seen)

    def test_a_rank_without_tls_is_told_at_once(self) -> None:
        port = self.free_port()
        self.start(0, port, HOCKET_TLS="psk")
        start = time.monotonic()
        other = self.start(1, port)
        text, _ = other.communicate(timeout=WAIT_S)
        self.assertEqual(other.returncode, 1, text)
        self.assertIn("rank 1 of 2 can't join the store of rank 0", text)
        self.assertIn("the server asks for TLS", text)
        self.assertLess(time.monotonic() - start, 20)

    def test_the_launcher_serves_its_store_over_tls(self) -> None:
        for words in ([], ["-x", "HOCKET_TLS=psk"]):
            variables = {} if words else {"HOCKET_TLS": "psk"}
            ran = run(HOCKET, "run", "-n", "2", *words, "--", "sh", "-c",
                      f"echo $HOCKET_TLS && exec {JOIN}", **variables)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertEqual(ran.stdout.count("psk"), 2)
            self.assertEqual(ran.stdout.count(" size=2"), 2)

    def test_launchers_of_several_nodes_meet_over_tls(self) -> None:
        port = self.free_port()
        nodes = [subprocess.Popen([HOCKET, "run", "--nnodes", "2", "--node-rank", str(node),
                                   "--master", f"127.0.0.1:{port}", "-n", "1", JOIN],
                                  env=environment(HOCKET_TLS="psk"), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True) for node in range(2)]
        for process in nodes:
            self.addCleanup(process.communicate, timeout=WAIT_S)
            self.addCleanup(process.kill)
        for process in nodes:
            text, _ = process.communicate(timeout=WAIT_S)
            self.assertEqual(process.returncode, 0, text)
            self.assertIn("size=2", text)


def why_no_tls() -> str:
    """Empty where the program can do TLS."""
    ran = run(HOCKET, "store", "--at", "127.0.0.1:1", "--timeout", "1ms", "ping", HOCKET_TLS="psk")
    return ran.stderr if "unsupported" in ran.stderr else ""


if __name__ == "__main__":
    HOCKET, JOIN = sys.argv.pop(1), sys.argv.pop(1)
    if why := why_no_tls():
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main(verbosity=2)  # with the reasons of what is skipped
