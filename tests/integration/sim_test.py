#!/usr/bin/env python3
"""`hocket sim`: operations timed on networks that are not here."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

HOCKET = ""  # the program: the first argument
SVG = "{http://www.w3.org/2000/svg}"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HOCKET, "sim", *words], capture_output=True, text=True, timeout=120,
                          check=False)


class Sim(unittest.TestCase):
    def answer(self, *words: str) -> str:
        ran = run(*words)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout

    def refusal(self, *words: str) -> str:
        ran = run(*words)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertTrue(ran.stderr.startswith("hocket sim: "), ran.stderr)
        return ran.stderr

    def document(self, *words: str) -> dict:
        return json.loads(self.answer("--json", *words))

    def test_table(self) -> None:
        said = self.answer("all_reduce", "-n", "12", "-b", "1M", "-e", "64M", "-f", "8")
        lines = said.splitlines()
        self.assertEqual(lines[0], "all_reduce: 12 ranks on 12 hosts, ethernet-10g")
        for size in ("1MB", "8MB", "64MB"):
            self.assertIn(size, lines)
        self.assertEqual(sum(line.startswith("  *  ") for line in lines), 3)
        self.assertRegex(said, r"\n  [* ]  ring +\d+\.\d\d ms +\d\.\d{3} +\d+ % +host \d, NIC 0, out")
        self.assertRegex(said, r"double_tree / \d+ ")

    def test_json(self) -> None:
        found = self.document("all_reduce", "-n", "8", "-b", "8", "-e", "32K", "-f", "64",
                              "--set", "latency=20us", "--set", "nic_bandwidth=10Gbit")
        self.assertEqual((found["operation"], found["ranks"]), ("all_reduce", 8))
        self.assertEqual(found["network"]["latency"], "20us")
        self.assertEqual(found["network"]["nic_bandwidth"], "1.25GB")
        self.assertEqual([each["bytes"] for each in found["sizes"]], [8, 512, 32768])
        for size in found["sizes"]:
            best = [each for each in size["algorithms"] if each["best"]]
            self.assertEqual(len(best), 1)
            self.assertEqual(best[0]["seconds"], min(a["seconds"] for a in size["algorithms"]))
            for each in size["algorithms"]:
                self.assertTrue(each["simulated"])
                self.assertAlmostEqual(each["bound_share"] * each["seconds"],
                                       size["bound_seconds"])
                self.assertAlmostEqual(each["algbw"] * each["seconds"], size["bytes"])
                self.assertAlmostEqual(each["busbw"], each["algbw"] * 14 / 8)
        self.assertEqual(found, self.document(
            "all_reduce", "-n", "8", "-b", "8", "-e", "32K", "-f", "64",
            "--set", "latency=20us", "--set", "nic_bandwidth=1.25GB"))

    def seconds(self, *words: str) -> float:
        found = self.document("-b", "1M", "-e", "1M", "--algorithm", "ring", "-n", "16", *words)
        return found["sizes"][0]["algorithms"][0]["seconds"]

    def test_hosts(self) -> None:
        alone = self.seconds()
        self.assertEqual(alone, self.seconds("--hosts", "16"))
        self.assertLess(self.seconds("--hosts", "1"), alone)
        self.assertEqual(self.seconds("--hosts", "4"), self.seconds("--ranks-per-host", "4"))
        self.assertLess(self.seconds("--network", "infiniband-hdr"), alone)
        self.assertGreater(self.seconds("--set", "background=0.5"), alone)

    def test_what_is_too_long_is_estimated(self) -> None:
        ring = ("-b", "1G", "-e", "1G", "--algorithm", "ring", "-n")
        found = self.document(*ring, "100000")  # one rank speaks for all
        self.assertTrue(found["sizes"][0]["algorithms"][0]["simulated"])
        found = self.document(*ring, "4096", "--ranks-per-host", "8")
        self.assertFalse(found["sizes"][0]["algorithms"][0]["simulated"])
        found = self.document("-n", "8", "-b", "1K", "-e", "1K", "--steps-max", "10")
        self.assertEqual({each["algorithm"]: each["simulated"]
                          for each in found["sizes"][0]["algorithms"]}["ring"], False)
        self.assertIn("by the formula", self.answer(*ring, "4096", "--ranks-per-host", "8"))

    def test_100000_ranks_in_ten_seconds_and_4_gib(self) -> None:
        begin = time.monotonic()
        found = self.document("-n", "100000", "-b", "64M", "-e", "64M", "--algorithm",
                              "recursive_doubling")
        took = time.monotonic() - begin
        (only,) = found["sizes"][0]["algorithms"]
        self.assertTrue(only["simulated"])
        info = subprocess.run([HOCKET, "info", "--json"], capture_output=True, text=True,
                              timeout=120, check=True)
        if json.loads(info.stdout)["build"]["sanitizer"] != "none":
            return  # that takes time and memory of its own
        self.assertLess(took, 10)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 4 << 20)

    def test_every_operation(self) -> None:
        for operation in ("reduce_scatter", "all_gather", "broadcast", "reduce", "gather",
                          "scatter", "all_to_all", "barrier", "scan", "exscan"):
            for ranks in ("1", "7"):
                found = self.document(operation, "-n", ranks, "-b", "100", "-e", "100")
                self.assertTrue(found["sizes"][0]["algorithms"], operation)
        self.assertEqual(self.document("broadcast", "-n", "4", "--root", "3")["root"], 3)

    def test_networks(self) -> None:
        said = self.answer("--networks")
        self.assertIn("infiniband-hdr: ", said)
        self.assertIn("  eager_bytes ", said)

    def test_plot(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plot.svg"
            self.assertEqual(self.answer("-n", "12", "-b", "1K", "-e", "1M", "-f", "32",
                                         "--plot", str(file)), "")
            root = ElementTree.parse(file).getroot()
            texts = [each.text for each in root.iter(f"{SVG}text")]
            for text in ("2 ranks", "8 ranks", "12 ranks", "1K", "32K", "1M", "circulant"):
                self.assertIn(text, texts)
            cells = [each.text for each in root.iter(f"{SVG}title")]
            self.assertEqual(len(cells), 4 * 3)
            self.assertRegex(cells[0], r"^\w+: [\d.e+]+ us, \d+ % of the bound$")
            self.assertIn("can't be written", self.refusal(
                "-n", "2", "-b", "8", "-e", "8", "--plot", str(Path(folder) / "none" / "x.svg")))

    def test_mistakes(self) -> None:
        self.assertIn("all_reduce?", self.refusal("all_reduc"))
        self.assertIn("ring?", self.refusal("--algorithm", "rng"))
        self.assertIn("ethernet-1g?", self.refusal("--network", "ethernet-2g"))
        self.assertIn("latency?", self.refusal("--set", "latenc=1us"))
        self.assertIn("a time such as", self.refusal("--set", "latency=soon"))
        self.assertIn("a bandwidth such as", self.refusal("--set", "nic_bandwidth=1bit"))
        self.assertIn("a number", self.refusal("--set", "nics_per_host=1.5"))
        self.assertIn("less than 1", self.refusal("--set", "background=1"))
        self.assertIn("no NAME=VALUE", self.refusal("--set", "latency"))
        self.assertIn("no size", self.refusal("-b", "8x"))
        self.assertIn("is more than", self.refusal("-b", "9", "-e", "8"))
        self.assertIn("2 or more", self.refusal("-f", "1"))
        self.assertIn("1 to ", self.refusal("-n", "0"))
        self.assertIn("none of 4 ranks", self.refusal("-n", "4", "--root", "4"))
        self.assertIn("--hosts or", self.refusal("--hosts", "2", "--ranks-per-host", "2"))
        self.assertEqual(run("--no-such-option").returncode, 2)


if __name__ == "__main__":
    HOCKET = sys.argv.pop(1)
    unittest.main(verbosity=2)  # with the reasons of what is skipped
