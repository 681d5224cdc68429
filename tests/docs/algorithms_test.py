#!/usr/bin/env python3
"""docs/algorithms.md is what its program writes, and what is wrong with it is noticed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "tools/docs"
sys.path.insert(0, str(SCRIPTS))

from algorithms import section
from entry import Entry, Wrong, read_entries
from formula import Formula
from program import Program
from truth import check_bounds, check_times

HOCKET = ""  # the program: the first argument
WORDS = """
[all_gather.ring]
rounds = "n - 1"
sent = "(n - 1)/n"
"""


class Algorithms(unittest.TestCase):
    def setUp(self) -> None:
        self.program = Program(Path(HOCKET))

    def entry(self, words: str) -> Entry:
        """What these words make of the ring all-gather."""
        entries = read_entries(self.program, tomllib.loads(words))
        return next(each for each in entries
                    if (each.operation, each.name) == ("all_gather", "ring"))

    def test_the_page_is_what_its_program_writes(self) -> None:
        command = [sys.executable, str(SCRIPTS / "algorithms.py"), HOCKET, "--check"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_right_formulas(self) -> None:
        entry = self.entry(WORDS)
        check_bounds(self.program, entry)
        self.assertEqual(check_times(self.program, entry), 1)

    def test_wrong_bounds(self) -> None:
        for right, wrong in (('"n - 1"', '"n"'), ('"(n - 1)/n"', '"1"')):
            with self.subTest(wrong=wrong), self.assertRaisesRegex(Wrong, "of all_gather ring is"):
                check_bounds(self.program, self.entry(WORDS.replace(right, wrong)))

    def test_bounds_that_are_never_reached(self) -> None:
        loose = WORDS.replace('"n - 1"', '"n"') + 'at_most = ["rounds"]'
        with self.assertRaisesRegex(Wrong, "rounds of all_gather ring is never as much"):
            check_bounds(self.program, self.entry(loose))

    def test_wrong_times(self) -> None:
        with self.assertRaisesRegex(Wrong, "line of all_gather ring is 1 by its formula"):
            check_times(self.program, self.entry(WORDS + 'line = "1"'))

    def test_words_that_mean_nothing(self) -> None:
        for words, said in ((WORDS.replace("ring", "rign"), "is about no algorithm"),
                            (WORDS + "wins = 1", "has wins, which means nothing"),
                            (WORDS.replace("sent", "line"), "needs both rounds and sent")):
            with self.subTest(said=said), self.assertRaisesRegex(Wrong, said):
                self.entry(words)

    def test_an_algorithm_without_words_has_its_bounds(self) -> None:
        text = "\n".join(section(self.program, self.entry(""), "", 1))
        self.assertIn("- Rounds: 3 (n = 4), 6 (n = 7), 63 (n = 64)", text)
        self.assertIn("- Sends, times m: 0.75 (n = 4), 0.8571 (n = 7), 0.9844 (n = 64)", text)
        self.assertIn("`hocket plan show all_gather ring -n 6`", text)

    def test_how_formulas_are_written(self) -> None:
        for source, written in (("2*(n - 1)/n", "2(n − 1)/n"), ("n - (p - 1)", "n − (p − 1)"),
                                ("(n + 1)*p", "(n + 1)·p"), ("n/(2*p)", "n/(2p)"),
                                ("2**(lg(n) - 1)", "2^(⌈log₂ n⌉ − 1)"),
                                ("max(n, ceil(p/2))", "max(n, ⌈p/2⌉)"),
                                ("fl(n) if pow2 else p", "p")):
            self.assertEqual(Formula(source).show(pow2=False)[0], written)


if __name__ == "__main__":
    HOCKET = sys.argv.pop(1)
    unittest.main(verbosity=2)
