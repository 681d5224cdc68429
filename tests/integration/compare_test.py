#!/usr/bin/env python3
"""`bench/compare`: what it makes of rounds, and a short one with whoever is here."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

COMPARE = Path(__file__).resolve().parents[2] / "bench" / "compare"
sys.path.insert(0, str(COMPARE.with_name("comparison")))

from place import Place
from results import as_json, cells
from rounds import Match, Round
from sizes import show_size
from table import losses, show_ratio, show_time, times

BUILD = ""  # the build folder: the argument
PATIENCE = 240


def round_of(ours: float, theirs: float, distances: tuple[float, float] = (0.2, 0.2)) -> Round:
    row = {"bytes": 8, "p99_s": 1.0}
    return Round({"Hocket": {8: {**row, "p50_s": ours}}, "Gloo": {8: {**row, "p50_s": theirs}},
                  "bare TCP": {8: {**row, "p50_s": 1e-9}}}, distances)


class Rounds(unittest.TestCase):
    def match(self, *rounds: Round) -> Match:
        return Match("all_reduce", Place(2), list(rounds))

    def test_a_ratio_is_the_median_of_those_of_rounds(self) -> None:
        match = self.match(round_of(1e-6, 2e-6), round_of(10e-6, 40e-6), round_of(3e-6, 3e-6))
        (cell,) = cells(match)
        self.assertEqual((cell.best_peer, cell.ratio), ("Gloo", 0.5))
        self.assertEqual(cell.time["Hocket"], 3e-6)
        self.assertEqual(losses([match]), [])

    def test_rounds_in_which_processors_moved_do_not_count(self) -> None:
        match = self.match(round_of(1e-6, 2e-6), round_of(9e-6, 1e-6, (0.05, 0.2)))
        self.assertEqual(len(match.valid), 1)
        self.assertEqual(cells(match)[0].ratio, 0.5)
        self.assertEqual(as_json(match)["void_rounds"], 1)

    def test_losses_are_seen(self) -> None:
        match = self.match(round_of(3e-6, 2e-6))
        self.assertIn("8 B: 1.50 of Gloo's time", losses([match])[0])
        self.assertIn("🔴", "".join(times(match)))
        self.assertEqual(show_ratio(0.8), "0.80")
        self.assertIn("🔴", show_ratio(0.8, is_better_above=True))

    def test_of_what_goes_one_way_the_mean_counts(self) -> None:
        rows = {"Hocket": {8: {"bytes": 8, "p50_s": 2e-6, "time_s": 3e-6, "p99_s": 1.0}},
                "Gloo": {8: {"bytes": 8, "p50_s": 1e-6, "time_s": 6e-6, "p99_s": 1.0}}}
        match = Match("broadcast", Place(2), [Round(rows, (0.2, 0.2))])
        self.assertEqual(cells(match)[0].ratio, 0.5)
        self.assertEqual(as_json(match)["sizes"][0]["time_s"]["Hocket"], 3e-6)

    def test_no_result_of_ours_is_a_loss(self) -> None:
        match = self.match(round_of(3e-6, 2e-6))
        del match.rounds[0].rows["Hocket"]
        self.assertIn("8 B: Hocket gave no result", losses([match])[0])

    def test_words(self) -> None:
        self.assertEqual([show_size(size) for size in (8, 4096, 3 << 20)], ["8 B", "4 KiB", "3 MiB"])
        self.assertEqual([show_time(time) for time in (8.12e-6, 950e-6, 21e-3, 3.37)],
                         ["8.12 µs", "950 µs", "21 ms", "3.37 s"])


class Compare(unittest.TestCase):
    def compare(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(COMPARE), "--build", BUILD, *words], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)

    def test_a_short_one(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ran = self.compare("--operations", "all_reduce,sendrecv,start", "--ranks", "2", "--sizes",
                               "8,4K", "--rounds", "1", "--out", folder)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            document = json.loads((Path(folder) / "comparison" / "all.json").read_text(encoding="utf-8"))
            self.assertEqual([each["operation"] for each in document["matches"]],
                             ["all_reduce", "sendrecv", "start"])
            for match in document["matches"]:
                if match["rounds"] == 0:
                    continue  # the processors moved in both
                for size in match["sizes"]:
                    self.assertGreater(size["p50_s"]["Hocket"], 0)
                if match["operation"] == "start":
                    self.assertGreater(match["sizes"][0]["peak_bytes"]["Hocket"], 1 << 20)
            page = (Path(folder) / "comparison.md").read_text(encoding="utf-8")
            self.assertIn("### all_reduce, 2 ranks", page)
            for plot in Path(folder).glob("comparison/*.svg"):
                self.assertTrue(xml.parse(plot).getroot().tag.endswith("svg"))
            self.assertEqual(len(list(Path(folder).glob("comparison/*.svg"))), 3)

    def test_what_makes_no_sense_is_refused(self) -> None:
        for words, told in ((("--operations", "all_reduced"), "no operation is called all_reduced"),
                            (("--peers", "Nobody"), "nobody is called Nobody"),
                            (("--sizes", "many"), "--sizes")):
            with self.subTest(words):
                ran = self.compare("--congestion", "system", *words)
                self.assertNotEqual(ran.returncode, 0)
                self.assertIn(told, ran.stderr)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
