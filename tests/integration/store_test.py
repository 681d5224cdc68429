#!/usr/bin/env python3
"""`hocket store`: a store served and asked from the command line."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

HOCKET = ""  # the program: the first argument
SECRET = "known to the tests alone"


def environment(**variables: str) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("HOCKET_")}
    return {**inherited, "HOCKET_SECRET": SECRET, **variables}


class Store(unittest.TestCase):
    def setUp(self) -> None:
        self.server = subprocess.Popen(
            [HOCKET, "store", "serve", "--listen", "127.0.0.1:0", "--memory", "1M"],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_server)
        told = self.server.stdout.readline()
        found = re.fullmatch(r"serving a store at (127\.0\.0\.1:\d+) with a secret\n", told)
        self.assertIsNotNone(found, told)
        self.at = found[1]

    def end_server(self) -> None:
        if self.server.poll() is None:
            self.server.kill()
        self.server.communicate(timeout=60)

    def ask(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([HOCKET, "store", "--at", self.at, *words],
                              env=environment(**variables), capture_output=True, text=True,
                              timeout=60, check=False)

    def answer(self, *words: str) -> str:
        ran = self.ask(*words)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout

    def refusal(self, *words: str, **variables: str) -> str:
        ran = self.ask(*words, **variables)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertTrue(ran.stderr.startswith("hocket store: "), ran.stderr)
        self.assertNotIn(SECRET, ran.stderr)
        return ran.stderr

    def test_values(self) -> None:
        self.assertEqual(self.answer("set", "k", "a value"), "")
        self.assertEqual(self.answer("get", "k"), "a value\n")
        self.assertEqual(self.answer("add", "n", "-5"), "-5\n")
        self.assertEqual(self.answer("keys"), "k\nn\n")
        self.assertEqual(self.answer("set", "k", "--", "-v"), "")
        self.assertEqual(self.answer("get", "k"), "-v\n")
        self.assertEqual(self.answer("keys", "n"), "n\n")
        self.assertEqual(self.answer("wait", "k", "n"), "")
        self.assertEqual(self.answer("delete", "k"), "")
        self.assertIn('there is no key "k"', self.refusal("delete", "k"))

    def test_ping(self) -> None:
        self.assertRegex(self.answer("ping"), rf"^the store at {self.at} answers in \d+ us\n$")

    def test_the_variable_names_the_store(self) -> None:
        ran = subprocess.run([HOCKET, "store", "set", "k", "v"], capture_output=True, timeout=60,
                             env=environment(HOCKET_STORE=self.at), check=False)
        self.assertEqual(ran.returncode, 0)
        self.assertEqual(self.answer("get", "k"), "v\n")

    def test_what_is_missing_is_named_in_time(self) -> None:
        start = time.monotonic()
        told = self.refusal("--timeout", "200ms", "wait", "k1", "k2")
        self.assertLess(time.monotonic() - start, 10)
        self.assertIn('2 of 2 keys did not appear within 200ms: "k1", "k2"', told)

    def test_a_wrong_secret_or_job_is_refused(self) -> None:
        self.assertIn("another secret", self.refusal("ping", HOCKET_SECRET="wrong"))
        self.assertIn("hint: ", self.refusal("ping", HOCKET_SECRET=""))
        self.assertIn("job", self.refusal("ping", HOCKET_JOB="another"))
        self.assertIn("job", self.refusal("--job", "another", "ping"))

    def test_a_full_store_says_so(self) -> None:
        for i in range(20):
            ran = self.ask("set", f"k{i}", "x" * 100_000)
            if ran.returncode:
                break
        self.assertIn("the store is full: it may hold 1M", ran.stderr)
        self.assertEqual(self.answer("get", "k0"), "x" * 100_000 + "\n")

    def test_mistakes_are_refused(self) -> None:
        for words in (["get"], ["set", "k"], ["add", "n", "x"], ["frobnicate"], []):
            with self.subTest(words):
                self.assertEqual(self.ask(*words).returncode, 2)
        self.assertIn("behind `--`", self.ask("set", "k", "-v").stderr)
        self.assertIn("10s", self.refusal("--timeout", "soon", "ping"))

    def test_a_second_server_is_refused(self) -> None:
        ran = subprocess.run([HOCKET, "store", "serve", "--listen", self.at], env=environment(),
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("another program listens there", ran.stderr)

    def test_serve_listens_where_at_says(self) -> None:
        server = subprocess.Popen([HOCKET, "store", "serve", "--at", "127.0.0.1:0"],
                                  env=environment(), text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(server.communicate, timeout=60)
        self.addCleanup(server.kill)
        assert server.stdout
        said = server.stdout.readline()
        self.assertRegex(said, r"^serving a store at 127\.0\.0\.1:[1-9]\d* ")
        self.assertNotIn(":29500 ", said)

    def test_serve_serves_clients_of_pytorch_if_told(self) -> None:
        server = subprocess.Popen([HOCKET, "store", "serve", "--torch", "--listen", "127.0.0.1:0"],
                                  env=environment(), stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate, timeout=60)
        self.addCleanup(server.kill)
        said = re.fullmatch(r"serving a store at (127\.0\.0\.1):(\d+) with a secret, and clients of "
                            r"PyTorch's TCPStore without one\n", server.stdout.readline())
        with socket.create_connection((said[1], int(said[2])), timeout=60) as client:
            client.sendall(b"\0\xce\xf7\x85\x3c" b"\x0dping")
            self.assertEqual(client.recv(4), b"ping")

    def test_what_serve_would_ignore_is_refused(self) -> None:
        for words, text in (
            (["--at", "127.0.0.1:1", "--listen", "127.0.0.1:2"], "--listen 127.0.0.1:2 and --at 127.0.0.1:1"),
            (["--timeout", "1s"], "hocket store serve takes no --timeout"),
        ):
            with self.subTest(words):
                ran = subprocess.run([HOCKET, "store", "serve", *words], env=environment(), text=True,
                                     capture_output=True, timeout=60, check=False)
                self.assertEqual(ran.returncode, 1)
                self.assertIn(text, ran.stderr)

    def test_it_ends_when_told(self) -> None:
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(timeout=60), 0)
        self.assertIn("hint: ", self.refusal("--timeout", "300ms", "ping"))

    def test_what_is_ignored_does_not_end_it(self) -> None:
        server = subprocess.Popen(["nohup", HOCKET, "store", "serve", "--listen", "127.0.0.1:0"],
                                  env=environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.communicate, timeout=60)
        self.addCleanup(server.kill)
        assert server.stdout
        server.stdout.readline()
        server.send_signal(signal.SIGHUP)
        with self.assertRaises(subprocess.TimeoutExpired):
            server.wait(timeout=1)

    def test_the_secret_is_on_no_command_line(self) -> None:
        with open(f"/proc/{self.server.pid}/cmdline", "rb") as file:
            self.assertNotIn(SECRET.encode(), file.read())


if __name__ == "__main__":
    HOCKET = sys.argv.pop(1)
    unittest.main(verbosity=2)  # with the reasons of what is skipped
