#!/usr/bin/env python3
"""`hocket plan`: algorithms listed, drawn and proved from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

HOCKET = ""  # the program: the first argument

RING_OF_3 = """\
all_reduce by ring, 3 ranks: 12 messages in 4 rounds; a rank sends 4 blocks at most, where the whole vector is 3

rank  1      2      3     4
   0  i2→1+  o1→1+  o0→1  o2→1
   1  i0→2+  o2→2+  o1→2  o0→2
   2  i1→0+  o0→0+  o2→0  o1→0

i, o, s: blocks of in, out, scratch; → to that rank; + which reduces them
"""


def plan(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HOCKET, "plan", *words], capture_output=True, text=True, timeout=60)


class Plan(unittest.TestCase):
    def test_algorithms_are_listed(self) -> None:
        done = plan("list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all_reduce\n  ring ", done.stdout)
        rows = json.loads(plan("list", "--json").stdout)
        self.assertIn({"operation": "barrier", "algorithm": "dissemination",
                       "summary": "fewest rounds", "allows_uneven": False, "is_canonical": False,
                       "keeps_order": False, "knows_hosts": False, "only_moves": False, "takes_pieces": False}, rows)
        self.assertEqual(len(json.loads(plan("list", "barrier", "--json").stdout)), 2)

    def test_what_algorithms_cost(self) -> None:
        said = plan("list", "all_reduce", "-n", "6", "--pieces", "4").stdout
        self.assertRegex(said, r"\n +rounds +hops +sends\b")
        self.assertRegex(said, r"\n  ring +10 +10 +1\.67 m +fewest bytes")
        self.assertRegex(said, r"\n  double_tree +\d+ +6 +2\.00 m ")
        rows = json.loads(plan("list", "broadcast", "chain", "-n", "6", "--pieces", "4",
                               "--json").stdout)
        self.assertTrue(rows[0]["takes_pieces"])
        self.assertEqual(rows[0]["bound"], {"rounds": 8, "hops": 5, "blocks_sent": 4, "blocks": 4,
                                            "rounds_are_exact": True})
        self.assertEqual(plan("list", "-n", "0").returncode, 2)

    def test_a_chart(self) -> None:
        done = plan("show", "all_reduce", "ring", "-n", "3")
        self.assertEqual((done.returncode, done.stdout), (0, RING_OF_3), done.stderr)

    def test_a_large_world_is_cut_and_says_so(self) -> None:
        done = plan("show", "all_gather", "ring", "-n", "40")
        self.assertIn("… 40 ranks and 39 rounds in all; --svg FILE draws them", done.stdout)

    def test_a_world_of_one(self) -> None:
        done = plan("show", "all_reduce", "ring", "-n", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 messages", done.stdout)

    def test_a_drawing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tree.svg"
            done = plan("show", "broadcast", "binomial", "-n", "6", "--svg", str(path))
            self.assertEqual(done.returncode, 0, done.stderr)
            drawing = xml.etree.ElementTree.parse(path).getroot()
        arrows = [each for each in drawing.iter("{http://www.w3.org/2000/svg}path")
                  if each.get("class") == "move"]
        self.assertEqual(len(arrows), 5)
        words = [each.text for each in drawing.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("broadcast by binomial: 6 ranks, one a row; 3 rounds, one a column", words)
        self.assertEqual((words.count("in[0]"), words.count("out[0]")), (3, 2))

    def test_a_drawing_that_cannot_be_written(self) -> None:
        done = plan("show", "broadcast", "binomial", "--svg", "/nowhere/tree.svg")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/tree.svg can't be written", done.stderr)

    def test_the_plans_as_json(self) -> None:
        world = json.loads(plan("show", "all_reduce", "ring", "-n", "3", "--json").stdout)
        self.assertEqual((world["version"], world["size"], world["blocks_per_chunk"]), (1, 3, 3))
        self.assertEqual([each["rank"] for each in world["plans"]], [0, 1, 2])
        self.assertEqual(world["plans"][0]["steps"][:3], [
            {"kind": "send", "peer": 1, "lane": 0,
             "from": {"buffer": "in", "first": 2, "count": 1}, "after": []},
            {"kind": "recv_reduce", "peer": 2, "lane": 0,
             "from": {"buffer": "in", "first": 1, "count": 1},
             "to": {"buffer": "out", "first": 1, "count": 1}, "after": []},
            {"kind": "send", "peer": 1, "lane": 0,
             "from": {"buffer": "out", "first": 1, "count": 1}, "after": [1]},
        ])

    def test_contributions(self) -> None:
        words = ("show", "all_reduce", "canonical", "-n", "3", "--contributions", "8")
        self.assertIn("all_reduce by canonical, 3 ranks, 8 contributions: 16 messages in 6 rounds",
                      plan(*words).stdout)
        self.assertEqual(json.loads(plan(*words, "--json").stdout)["contributions"], 8)

    def test_a_proof(self) -> None:
        done = plan("verify", "all_reduce", "circulant", "--sizes", "1-20,33")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"all_reduce +circulant +21 ")
        self.assertIn("1 of 1 algorithms proved", done.stdout)

    def test_proofs_as_json(self) -> None:
        rows = json.loads(plan("verify", "barrier", "--sizes", "1-9", "--json").stdout)
        self.assertEqual((rows[0]["algorithm"], rows[0]["sizes"], rows[0]["failure"]),
                         ("dissemination", 9, ""))

    def test_what_is_too_large_is_skipped_and_said(self) -> None:
        words = ("verify", "all_reduce", "canonical", "--sizes", "3001", "--memory", "0.5")
        done = plan(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(plan(*words, "--needs-all-sizes").returncode, 1)
        self.assertIn("skipped 1 of the sizes, from 3001 on: too much for memory",
                      done.stdout)
        self.assertIn("0 of 1 algorithms proved", done.stdout)

    def test_mistakes_are_refused(self) -> None:
        for words, said in (
                (("show", "all_reduc", "ring"), "did you mean all_reduce?"),
                (("show", "all_reduce", "rign"), 'there is no algorithm for all_reduce "rign"'),
                (("show", "broadcast", "chain", "--root", "9"), "--root 9 is no root of broadcast by 4 ranks"),
                (("show", "all_reduce", "ring", "--root", "1"), "is no root of all_reduce"),
                (("show", "all_reduce", "ring", "--contributions", "8"),
                 "all_reduce by canonical takes any number"),
                (("show", "all_reduce", "canonical", "-n", "9", "--contributions", "8"),
                 "too few for 9 ranks"),
                (("verify",), "name an operation, or say --all"),
                (("verify", "--all", "--sizes", "5-3"), "is no list of sizes"),
                (("verify", "--all", "--sizes", "0"), "is no list of sizes"),
                (("verify", "--all", "--sizes", "1,,2"), "is no list of sizes")):
            with self.subTest(words=words):
                done = plan(*words)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(said, done.stderr)


if __name__ == "__main__":
    HOCKET = sys.argv.pop(1)
    unittest.main(verbosity=2)
