#!/usr/bin/env python3
"""`hocket run` and ranks that end before they join: those that wait for them are told at once."""

from __future__ import annotations

import sys
import time
import unittest

import launcher
from launcher import SOON, Case

JOIN = ""  # the program: the second argument


class EndsBeforeItJoins(Case):
    def told(self, program: str, *expected: str, **variables: str) -> None:
        begin = time.monotonic()
        status, stdout, stderr = self.ran("-n", "4", "sh", "-c", program,
                                          HOCKET_STORE_TIMEOUT="60s", JOIN=JOIN, **variables)
        self.assertEqual(status, 1, stdout + stderr)
        self.assertLess(time.monotonic() - begin, SOON, stdout + stderr)
        text = (stdout + stderr).decode()
        for part in expected:
            self.assertRegex(text, part)

    def test_with_status_0(self) -> None:
        self.told('[ $RANK = 2 ] && { sleep 1; exit 0; }; exec "$JOIN"',
                  r"peer lost: rank 2 \(pid \d+ on \S+\) exited with status 0 before it joined")

    def test_with_status_0_before_anybody_waits(self) -> None:
        self.told('[ $RANK = 0 ] && exit 0; sleep 1; exec "$JOIN"',
                  r"rank 0 \(pid \d+ on \S+\) exited with status 0 before it joined")

    def test_over_tls(self) -> None:
        self.told('[ $RANK = 1 ] && { sleep 1; exit 0; }; exec "$JOIN"', "rank 1 |without TLS",
                  HOCKET_TLS="psk")

    def test_programs_that_never_join_are_none_of_it(self) -> None:
        status, stdout, stderr = self.ran("-n", "4", "hostname")
        self.assertEqual((status, len(stdout.splitlines()), stderr), (0, 4, b""))

    def test_ranks_that_joined_may_end_in_any_order(self) -> None:
        program = '"$JOIN"; sleep 0.$RANK'
        status, stdout, stderr = self.ran("-n", "4", "sh", "-c", program, JOIN=JOIN)
        self.assertEqual((status, stdout.count(b" size=4 ")), (0, 4), stdout + stderr)


if __name__ == "__main__":
    launcher.HOCKET = sys.argv.pop(1)
    JOIN = sys.argv.pop(1)
    unittest.main(verbosity=2)
