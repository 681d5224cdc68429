#!/usr/bin/env python3
"""bench/choices: what its page says of times, and a short one on two hosts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from netlab import skip_where_there_can_be_none

ROOT = Path(__file__).resolve().parents[2]
CHOICES = ROOT / "bench" / "choices"
sys.path[:0] = [str(CHOICES), str(ROOT / "bench" / "comparison")]

from measured import BEST, SECOND, WITH, WITHOUT, Candidate, Cell, chosen_rules, rules
from page import page

BUILD = ""  # the build folder: the argument
PATIENCE = 240


def cell(ranks: int, size: int, chosen: float, simulated: float) -> Cell:
    """The fastest took 10 µs, the next one 12."""
    return Cell(ranks, size, "two_shot/1",
                [Candidate("ring", 1, 10e-6, simulated), Candidate("swing", 1, 12e-6, 12e-6)],
                {WITHOUT: [chosen, chosen, 1.0], WITH: [10.5e-6], BEST: [10e-6], SECOND: [12e-6]})


class Page(unittest.TestCase):
    CELLS = [cell(2, 1024, 15e-6, 11e-6), cell(2, 65536, 10e-6, 12e-6)]

    def setUp(self) -> None:
        self.said = page(self.CELLS, {"versions": {"Hocket": "1"}, "processors": 2, "processor": "x"},
                         "drawing.svg")

    def test_regret_is_that_of_the_median_to_the_fastest(self) -> None:
        self.assertIn("without a tuning file takes at most 10 % longer than the fastest algorithm in"
                      " 1 of 2 cells; at worst 50 % (1 KiB, 2 hosts)", self.said)
        self.assertIn("with a tuning file takes at most 10 % longer than the fastest algorithm in"
                      " 2 of 2 cells", self.said)
        self.assertIn("| 1 KiB | 🔴 **50 %** |", self.said)
        self.assertIn("| 64 KiB | 0 % |", self.said)

    def test_an_algorithm_has_no_regret_for_itself(self) -> None:
        """However long it took when it was measured again: all of its times count."""
        one = cell(2, 1024, 10e-6, 10e-6)
        one.seconds[WITH] = [12e-6]
        self.assertAlmostEqual(one.regret(WITH), 0.2)
        one.chosen = "ring/1"
        self.assertEqual(one.fastest, ("ring/1", 11e-6))
        self.assertEqual(one.regret(WITH), 0)
        self.assertAlmostEqual(one.regret(SECOND), 12 / 11 - 1)

    def test_what_is_foretold_badly_is_seen(self) -> None:
        self.assertIn("the fastest algorithm's time in 1 of 2 cells, and of what"
                      " every algorithm took in 3 of 4", self.said)
        self.assertIn("| 1 KiB | 1.10 |", self.said)
        self.assertIn("| 64 KiB | 🔴 **1.20** |", self.said)

    def test_an_algorithm_in_pieces_is_one_of_its_own(self) -> None:
        """That was second when all were measured, and faster in turns."""
        tree = Candidate("double_tree", 4, 12e-6, 12e-6)
        one = Cell(2, 1024, "double_tree/4", [Candidate("ring", 1, 10e-6, 10e-6), tree],
                   {WITHOUT: [9e-6], WITH: [9e-6], BEST: [10e-6], SECOND: [8e-6]})
        self.assertEqual(one.fastest, ("double_tree/4", 8.5e-6))
        self.assertAlmostEqual(one.foretold, 12 / 8.5)
        self.assertEqual(rules([one], 1), "all_reduce:1024-1024=double_tree/4")

    def test_what_was_chosen_can_be_chosen_by_rules(self) -> None:
        self.assertEqual(chosen_rules(self.CELLS), ["all_reduce:0-8192@2 = two_shot/1",
                                                    "all_reduce:8193-@2 = two_shot/1"])


class Measured(unittest.TestCase):
    def test_two_hosts(self) -> None:
        skip_where_there_can_be_none()
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([str(ROOT / "tools" / "netlab"), "run", "--hosts", "2", "--", sys.executable,
                            str(CHOICES), "--build", BUILD, "--out", folder, "--hosts", "2",
                            "--sizes", "1K,2M", "--rounds", "1"], check=True, timeout=PATIENCE)
            self.assertIn("| 2 MiB |", Path(folder, "choices.md").read_text("utf-8"))
            xml.parse(Path(folder, "choices", "choices.svg"))
            rules = Path(folder, "choices", "rules.txt").read_text("ascii").splitlines()
            self.assertEqual(rules[0], "hocket-tuning 1")
            document = json.loads(Path(folder, "choices", "all.json").read_text("utf-8"))
            self.assertEqual([each["size"] for each in document["cells"]], [1 << 10, 2 << 20])
            for each in document["cells"]:
                self.assertEqual(set(each["seconds"]), {WITHOUT, WITH, BEST, SECOND})
            # What a link of 1 Gbit/s carries, at most and nearly.
            large = document["cells"][1]
            rate = large["size"] / large["candidates"][0]["measured"]
            self.assertTrue(60e6 < rate < 125e6, rate)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
