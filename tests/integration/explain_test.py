#!/usr/bin/env python3
"""`hocket plan explain`: which algorithm an operation gets, and why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HOCKET = ""  # the program: the first argument


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """With these HOCKET_* variables and no others."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("HOCKET_")}
    return subprocess.run([HOCKET, "plan", "explain", *words], env={**inherited, **variables},
                          capture_output=True, text=True, timeout=120, check=False)


class Explain(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def file(self, text: str) -> str:
        path = self.folder / "tuning"
        path.write_text(text)
        return str(path)

    def answer(self, *words: str, **variables: str) -> str:
        ran = run(*words, **variables)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return ran.stdout

    def document(self, *words: str, **variables: str) -> dict:
        return json.loads(self.answer("--json", *words, **variables))

    def refusal(self, *words: str, **variables: str) -> str:
        ran = run(*words, **variables)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertTrue(ran.stderr.startswith("hocket plan explain: "), ran.stderr)
        return ran.stderr

    def test_small_and_large_vectors_get_different_algorithms(self) -> None:
        chosen = {size: self.document("all_reduce", "-n", "12", "--bytes", size)["chosen"]
                  for size in ("64", "64M")}
        self.assertNotEqual(chosen["64"], chosen["64M"])

    def test_ranks_that_share_processors_take_fewer_messages(self) -> None:
        question = ("reduce_scatter", "-n", "4", "--hosts", "1", "--bytes", "32K")
        self.assertEqual(self.document(*question)["chosen"], "direct")
        self.assertEqual(self.document(*question, "--processors", "4")["chosen"], "direct")
        self.assertEqual(self.document(*question, "--processors", "2")["chosen"], "circulant")

    def test_shared_memory_changes_the_choice(self) -> None:
        question = ("all_reduce", "-n", "2", "--hosts", "1", "--bytes", "40K")
        self.assertEqual(self.document(*question)["chosen"], "one_shot")
        self.assertEqual(self.document(*question, "--shares-memory")["chosen"], "ring")

    def test_table(self) -> None:
        said = self.answer("all_reduce", "--ranks", "12", "-b", "1M", "--hosts", "3")
        lines = said.splitlines()
        self.assertEqual(lines[0], "all_reduce of 1MB: 12 ranks on 3 hosts, tcp")
        self.assertEqual(sum(line.startswith("  *  ") for line in lines), 1)
        self.assertRegex(said, r"\n  [* ]  ring +\d+\.\d\d ms +\d+\.\d\d ms +1 +22 +1.83MB\n")
        self.assertRegex(said, r"\n\w+ is chosen because it should take the least time; "
                               r"there are no rules\.\n")

    def test_json(self) -> None:
        found = self.document("broadcast", "-n", "7", "-b", "100K", "--root", "3")
        self.assertEqual((found["operation"], found["bytes"], found["ranks"], found["root"]),
                         ("broadcast", 100 << 10, 7, 3))
        self.assertEqual(found["why"], {"by": "estimate"})
        estimates = [each["estimated_seconds"] for each in found["candidates"]]
        self.assertEqual(estimates, sorted(estimates))
        self.assertEqual([each["chosen"] for each in found["candidates"]],
                         [True] + (len(estimates) - 1) * [False])
        self.assertEqual(found["chosen"], found["candidates"][0]["algorithm"])
        binomial = next(each for each in found["candidates"] if each["algorithm"] == "binomial")
        self.assertEqual((binomial["rounds"], binomial["bytes_sent"]), (3, 3 * (100 << 10)))
        self.assertGreater(binomial["simulated_seconds"], 0)

    def test_a_large_world_is_not_simulated(self) -> None:
        found = self.document("all_reduce", "-n", "1000", "--hosts", "500", "--steps-max", "100000")
        ring = next(each for each in found["candidates"] if each["algorithm"] == "ring")
        self.assertIsNone(ring["simulated_seconds"])
        self.assertIn("too many steps", self.answer("all_reduce", "--steps-max", "1"))

    def test_the_variable_has_the_first_word(self) -> None:
        words = ("all_reduce", "-n", "12", "-b", "1M")
        rules = "all_reduce:-4K=one_shot,all_reduce@8-=ring"
        found = self.document(*words, HOCKET_ALGORITHM=rules)
        self.assertEqual(found["chosen"], "ring")
        self.assertEqual(found["why"], {"by": "rule", "rule": "all_reduce@8-=ring",
                                        "source": "HOCKET_ALGORITHM"})
        self.assertIn('ring is chosen by the rule "all_reduce@8-=ring" of HOCKET_ALGORITHM.',
                      self.answer(*words, HOCKET_ALGORITHM=rules))
        self.assertIn("no rule fits", self.answer(*words, HOCKET_ALGORITHM="all_reduce:1=ring"))

    def test_pieces_of_a_rule(self) -> None:
        found = self.document("broadcast", "-n", "9", HOCKET_ALGORITHM="broadcast=chain/7")
        chosen = next(each for each in found["candidates"] if each["chosen"])
        self.assertEqual((chosen["algorithm"], chosen["pieces"], chosen["rounds"]), ("chain", 7, 14))

    def test_a_tuning_file(self) -> None:
        file = self.file("hocket-tuning 1\nnetwork.latency = 9ms\nall_reduce:1M- = swing\n")
        words = ("all_reduce", "-n", "12", "-b", "1M")
        found = self.document(*words, "--tuning-file", file)
        self.assertEqual(found["chosen"], "swing")
        self.assertEqual(found["why"]["source"], f"{file}, line 3")
        self.assertEqual(found["network"]["latency"], "9000us")
        self.assertEqual(found, self.document(*words, HOCKET_TUNING_FILE=file))
        over = self.document(*words, HOCKET_TUNING_FILE=file, HOCKET_ALGORITHM="ring")
        self.assertEqual((over["chosen"], over["why"]["source"]), ("ring", "HOCKET_ALGORITHM"))

    def test_what_was_measured(self) -> None:
        file = self.file("hocket-tuning 1\nmeasured all_reduce:1M@12 ring = 2.5ms\n")
        words = ("all_reduce", "-n", "12", "--tuning-file", file)
        self.assertRegex(self.answer(*words), r"simulated +measured +pieces[^$]*"
                                              r"ring +[\d.]+ ms +[\d.]+ ms +2\.50 ms +1 ")
        measured = {each["algorithm"]: each["measured_seconds"]
                    for each in self.document(*words)["candidates"]}
        self.assertEqual((measured["ring"], measured["swing"]), (0.0025, None))
        self.assertNotIn("measured", self.answer(*words, "--bytes", "2M"))

    def test_what_was_measured_in_other_pieces_stands_by_itself(self) -> None:
        file = self.file("hocket-tuning 1\nmeasured all_reduce:1M@12 double_tree/2 = 2.5ms\n"
                         "measured all_reduce:1M@12 double_tree/512 = 3.5ms\n"
                         "all_reduce = double_tree/512\n")
        found = self.document("all_reduce", "-n", "12", "--tuning-file", file)["candidates"]
        trees = {each["pieces"]: each for each in found if each["algorithm"] == "double_tree"}
        self.assertEqual({pieces: each["measured_seconds"] for pieces, each in trees.items()},
                         {2: 0.0025, 512: 0.0035})
        self.assertNotEqual(trees[2]["simulated_seconds"], trees[512]["simulated_seconds"])
        self.assertEqual([each["pieces"] for each in found if each["chosen"]], [512])

    def test_the_numbers_of_a_tuning_file_change_the_choice(self) -> None:
        file = self.file("hocket-tuning 1\nnetwork.latency = 90ms\n")
        words = ("all_reduce", "-n", "12", "-b", "1M")
        self.assertNotEqual(self.document(*words, "--tuning-file", file)["chosen"],
                            self.document(*words)["chosen"])
        self.assertEqual(self.document(*words, "--tuning-file", file, "--network", "tcp"),
                         self.document(*words))

    def test_uneven_chunks(self) -> None:
        even = self.document("all_to_all", "-n", "16", "-b", "64")
        self.assertIn("bruck", [each["algorithm"] for each in even["candidates"]])
        uneven = self.document("all_to_all", "-n", "16", "-b", "64", "--uneven")
        self.assertEqual([each["algorithm"] for each in uneven["candidates"]], ["pairwise"])

    def test_an_op_that_is_not_commutative(self) -> None:
        for operation, names in (("all_reduce", {"one_shot", "star", "canonical"}),
                                 ("reduce_scatter", {"star", "canonical"}),
                                 ("reduce", {"canonical"})):
            found = self.document(operation, "--keeps-order")
            self.assertEqual({each["algorithm"] for each in found["candidates"]}, names)

    def test_every_operation(self) -> None:
        for operation in ("reduce_scatter", "all_gather", "reduce", "gather", "scatter", "barrier",
                          "scan", "exscan"):
            for ranks in ("1", "7"):
                self.assertTrue(self.document(operation, "-n", ranks)["candidates"], operation)

    def test_mistakes(self) -> None:
        for words, said in (
                (("all_reduc",), "did you mean all_reduce?"),
                (("barrier", "-b", "8x"), "8x is no size"),
                (("barrier", "-n", "0"), "there must be 1 to "),
                (("broadcast", "--root", "8"), "--root 8 is no root of broadcast by 8 ranks"),
                (("all_reduce", "--root", "1"), "is no root of all_reduce"),
                (("all_reduce", "-v"), "all_reduce has no chunks"),
                (("broadcast", "--keeps-order"), "broadcast reduces nothing"),
                (("barrier", "--network", "ethernet-2g"), "ethernet-1g?"),
                (("barrier", "--set", "latenc=1us"), "latency?"),
                (("barrier", "--tuning-file", str(self.folder / "none")), "No such file")):
            with self.subTest(words=words):
                self.assertIn(said, self.refusal(*words))

    def test_bad_rules_are_refused(self) -> None:
        said = self.refusal("barrier", HOCKET_ALGORITHM="all_reduce=rign")
        self.assertIn('HOCKET_ALGORITHM: the rule "all_reduce=rign": ', said)
        self.assertIn("did you mean ring?", said)
        self.assertIn("longer than", run("barrier", HOCKET_ALGORITHM=5000 * " ").stderr)

    def test_bad_tuning_files_are_refused(self) -> None:
        for text, said in (("ring\n", "line 1: a tuning file begins with"),
                           ("hocket-tuning 1\n\nringg\n", 'line 3: the rule "ringg": '),
                           ("hocket-tuning 1\nnetwork.latenc=1us\n", "line 2: a network has no")):
            with self.subTest(text=text):
                file = self.file(text)
                self.assertIn(f"{file}, {said}", self.refusal("barrier", HOCKET_TUNING_FILE=file))


if __name__ == "__main__":
    HOCKET = sys.argv.pop(1)
    unittest.main(verbosity=2)
