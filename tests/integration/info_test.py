#!/usr/bin/env python3
"""`hocket info` and what every sub-command of `hocket` has in common: help, version, refusals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest

HOCKET = ""  # the program: the first argument
VARIABLES = {
    "HOCKET_LOG_LEVEL",
    "HOCKET_SIMD",
    "HOCKET_RENDEZVOUS",
    "HOCKET_STORE",
    "HOCKET_STORE_TIMEOUT",
    "HOCKET_JOB",
    "HOCKET_ATTEMPT",
    "HOCKET_SECRET",
    "HOCKET_SECRET_FILE",
    "HOCKET_ALLOW_WITHOUT_SECRET",
    "HOCKET_TLS",
    "HOCKET_TLS_CERTIFICATE_FILE",
    "HOCKET_TLS_KEY_FILE",
    "HOCKET_TLS_CA_FILE",
    "HOCKET_INTERFACE",
    "HOCKET_ALGORITHM",
    "HOCKET_TUNING_FILE", "HOCKET_OVERLAP",
    "HOCKET_FAILURE_TIMEOUT", "HOCKET_STALL_WARNING", "HOCKET_TRACE", "HOCKET_HOST_TIMEOUT", "HOCKET_TCP_STREAMS", "HOCKET_TCP_INTERFACES",
    "HOCKET_IB_HCA", "HOCKET_IB_GID_INDEX", "HOCKET_IB_TC", "HOCKET_IB_SL",
    "HOCKET_TRANSPORT", "HOCKET_TRANSPORT_PATH",
    "HOCKET_DEVICE_MODULE", "HOCKET_NCCL", "HOCKET_NCCL_LIBRARY", "HOCKET_GPUDIRECT",
}


def run(*arguments: str, **variables: str | bytes) -> subprocess.CompletedProcess[str]:
    """Runs hocket with these HOCKET_* variables and no others."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("HOCKET_")}
    return subprocess.run(
        [HOCKET, *arguments],
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
    )


class Info(unittest.TestCase):
    def document(self, *arguments: str, **variables: str | bytes) -> dict:
        ran = run("info", "--json", *arguments, **variables)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def variable(self, document: dict, name: str) -> dict:
        (found,) = [each for each in document["environment"] if each["name"] == name]
        return found

    def test_json_describes_build_and_machine(self) -> None:
        document = self.document()
        self.assertRegex(document["version"], r"^\d+\.\d+\.\d+")
        self.assertEqual(document["c_abi"], 1)
        self.assertRegex(document["build"]["compiler"], r"^(gcc|clang) \d+\.")
        self.assertIn(document["machine"]["architecture"], os.uname())
        self.assertEqual(document["machine"]["cpus_usable"], len(os.sched_getaffinity(0)))
        self.assertGreaterEqual(document["machine"]["cpus"], document["machine"]["cpus_usable"])
        self.assertEqual(document["complaints"], [])

    def test_json_is_the_same_with_env(self) -> None:
        self.assertEqual(self.document("--env"), self.document())

    def test_the_widest_vectors_are_used(self) -> None:
        simd = self.document()["simd"]
        self.assertEqual((simd["wanted"], simd["used"]), ("best", simd["available"][0]))

    def test_hocket_simd_chooses_the_vectors(self) -> None:
        document = self.document()
        choices = self.variable(document, "HOCKET_SIMD")["choices"]
        for level in set(document["simd"]["available"]) & set(choices):
            simd = self.document(HOCKET_SIMD=level)["simd"]
            self.assertEqual((simd["wanted"], simd["used"]), (level, level))

    def test_the_log_level_decides_what_is_written(self) -> None:
        loud = run("info", HOCKET_LOG_LEVEL="info", HOCKET_NONSENSE="1")
        self.assertIn("HOCKET_LOG_LEVEL=info", loud.stderr)
        self.assertIn("HOCKET_NONSENSE", loud.stderr)
        self.assertEqual(run("info", HOCKET_LOG_LEVEL="error", HOCKET_NONSENSE="1").stderr, "")

    def test_what_is_absent_says_why(self) -> None:
        transports = {each["name"]: each for each in self.document()["transports"]}
        self.assertEqual(set(transports), {"shm", "tcp", "verbs"})  # and nothing that no build has
        for each in [*transports.values(), *self.document()["devices"]]:
            self.assertTrue(each["available"] or each["reason"])

    def test_what_can_not_be_loaded_says_why(self) -> None:
        document = self.document(HOCKET_TRANSPORT_PATH="/nowhere.so")
        self.assertIn("/nowhere.so", document["transport_complaints"][0])
        self.assertEqual(self.document()["transport_complaints"], [])
        self.assertIn("/nowhere.so", run("info", HOCKET_TRANSPORT_PATH="/nowhere.so").stdout)

    def test_the_interfaces_are_listed(self) -> None:
        listed = self.document()["interfaces"]
        loopback = [each for each in listed if each["loopback"] and ":" not in each["address"]]
        self.assertEqual(loopback[0]["address"], "127.0.0.1")
        shown = run("info").stdout
        for each in listed:
            self.assertIn(f"{each['address']}/{each['prefix_bits']}", shown)

    def test_the_launcher_is_told(self) -> None:
        place = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node7", "MASTER_PORT": "29500"}
        launcher = self.document(**place)["launcher"]
        self.assertEqual((launcher["rank"], launcher["store"]), ("1 of 4", "node7:29500"))
        self.assertRegex(run("info", **place).stdout, r"\n  rank +1 of 4\n")
        self.assertEqual(self.document(RANK="")["launcher"], {"name": "none"})

    def test_json_lists_the_environment(self) -> None:
        document = self.document(HOCKET_LOG_LEVEL="error")
        self.assertEqual({each["name"] for each in document["environment"]}, VARIABLES)
        level = self.variable(document, "HOCKET_LOG_LEVEL")
        self.assertEqual((level["type"], level["default"], level["value"]),
                         ("choice", "warning", "error"))
        self.assertEqual(level["choices"], ["error", "warning", "info", "debug"])
        self.assertTrue(level["help"])
        self.assertIsNone(self.variable(document, "HOCKET_SIMD")["value"])

    def test_text_shows_the_same(self) -> None:
        document, ran = self.document(), run("info")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        for shown in (
            f"Hocket {document['version']}",
            document["build"]["compiler"],
            document["machine"]["processor"],
            ", ".join(document["simd"]["available"]),
            next(each["summary"] for each in document["transports"] if each["available"]),
        ):
            self.assertIn(shown, ran.stdout)
        self.assertNotIn("\x1b", ran.stdout)
        self.assertIsNone(re.search(r"[ \t]$", ran.stdout, re.MULTILINE))

    def test_env_explains_every_variable(self) -> None:
        ran = run("info", "--env", HOCKET_SIMD="none")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        for each in self.document()["environment"]:
            for shown in (each["name"], each["type"], each["help"], ", ".join(each["choices"])):
                self.assertIn(shown, ran.stdout)
        self.assertRegex(ran.stdout, r"HOCKET_SIMD\n(  .*\n)*  set to +none\n")
        self.assertEqual(ran.stdout.count("  set to "), 1)

    def test_a_secret_is_not_shown(self) -> None:
        secret = "correct-horse-battery"
        for arguments in (["info"], ["info", "--env"], ["info", "--json"]):
            for value in (secret, 50 * secret * 10):
                ran = run(*arguments, HOCKET_LOG_LEVEL="debug", HOCKET_SECRET=value)
                self.assertEqual(ran.returncode, 0)
                self.assertNotIn(secret, ran.stdout + ran.stderr)
        document = self.document(HOCKET_SECRET=secret)
        self.assertEqual(self.variable(document, "HOCKET_SECRET")["value"], "(set)")
        self.assertIn("HOCKET_SECRET=(set)",
                      run("info", HOCKET_LOG_LEVEL="info", HOCKET_SECRET=secret).stderr)

    def test_an_unknown_variable_is_warned_of_with_the_nearest_name(self) -> None:
        ran = run("info", "--json", HOCKET_LOGLEVEL="info")
        complaint = "HOCKET_LOGLEVEL is not a variable of Hocket; did you mean HOCKET_LOG_LEVEL?"
        self.assertEqual(ran.returncode, 0)
        self.assertRegex(ran.stderr, rf"^hocket .* warning: {re.escape(complaint)}\n$")
        self.assertEqual(json.loads(ran.stdout)["complaints"], [complaint])

    def test_a_value_that_is_none_leaves_the_default(self) -> None:
        ran = run("info", "--json", HOCKET_SIMD="fastest")
        document = json.loads(ran.stdout)
        self.assertIn("best, avx512, avx2, sse4, neon, none", ran.stderr)
        self.assertEqual(document["simd"]["wanted"], "best")
        self.assertIsNone(self.variable(document, "HOCKET_SIMD")["value"])

    def test_json_is_json_whatever_the_environment_holds(self) -> None:
        for value in (b"\xff\xfe", b'"\n\t\\', b"x" * 5000):
            document = self.document(HOCKET_SIMD=value)
            self.assertEqual(len(document["complaints"]), 1)


class CommandLine(unittest.TestCase):
    def refused(self, *arguments: str) -> str:
        ran = run(*arguments)
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        return ran.stderr

    def test_version(self) -> None:
        ran = run("--version")
        self.assertEqual(ran.returncode, 0)
        self.assertRegex(ran.stdout, r"^hocket \d+\.\d+\.\d+\S* \(C ABI 1\)\n$")

    def test_help_names_every_command(self) -> None:
        for arguments in (["help"], ["--help"], ["-h"]):
            ran = run(*arguments)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertRegex(ran.stdout, r"\n  info +\S")

    def test_help_explains_a_command(self) -> None:
        ran = run("help", "info")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        self.assertIn("--json", ran.stdout)
        self.assertEqual(ran.stdout, run("info", "--help").stdout)

    def test_no_command_shows_the_help(self) -> None:
        self.assertEqual(self.refused(), run("help").stdout)

    def test_a_wrong_flag_is_refused_with_the_nearest(self) -> None:
        told = self.refused("info", "--jsn")
        self.assertIn("hocket info: I don't know --jsn; did you mean --json?\n", told)
        self.assertIn("hint: `hocket info --help`", told)

    def test_a_wrong_command_is_refused_with_the_nearest(self) -> None:
        for arguments in (["inf"], ["help", "inf"]):
            told = self.refused(*arguments)
            self.assertIn("hocket: I don't know inf; did you mean info?\n", told)
            self.assertIn("hint: `hocket --help`", told)

    def test_other_mistakes_are_refused(self) -> None:
        for arguments in (["--frobnicate"], ["info", "more"], ["info", "--json=7"],
                          ["help", "info", "info"], ["qqqqqq"]):
            with self.subTest(arguments):
                told = self.refused(*arguments)
                self.assertTrue(told.startswith("hocket"), told)
                self.assertIn("hint: ", told)

    def test_output_that_cannot_be_written_is_a_failure(self) -> None:
        with open("/dev/full", "w", encoding="utf-8") as full:
            ran = subprocess.run([HOCKET, "info"], stdout=full, stderr=subprocess.PIPE, text=True,
                                 timeout=60, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("No space left on device", ran.stderr)


if __name__ == "__main__":
    HOCKET = sys.argv.pop(1)
    unittest.main(verbosity=2)  # with the reasons of what is skipped
