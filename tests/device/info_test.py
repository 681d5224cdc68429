#!/usr/bin/env python3
"""What `hocket info` says of devices and NCCL, for each thing that may be missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unittest

HOCKET = FAKE_DEVICE = NEW_NCCL = OLDER_NCCL = CUDA = ""  # the arguments
HAS_NCCL = False


def info(**variables: str) -> dict:
    """Of the device and of NCCL."""
    inherited = {
        name: text for name, text in os.environ.items()
        if not name.startswith(("HOCKET_", "FAKE_"))
    }
    ran = subprocess.run(
        [HOCKET, "info", "--json"], env={**inherited, **variables}, capture_output=True, text=True,
        timeout=60, check=True,
    )
    document = json.loads(ran.stdout)
    device, nccl = document["devices"]
    return {"nccl": nccl, "device": device}


class Info(unittest.TestCase):
    def test_no_module(self) -> None:
        told = info(HOCKET_DEVICE_MODULE="/nowhere/module.so")
        self.assertFalse(told["device"]["available"])
        self.assertIn("/nowhere/module.so", told["device"]["reason"])

    def test_a_file_that_is_no_module(self) -> None:
        told = info(HOCKET_DEVICE_MODULE="libc.so.6")
        self.assertIn("hocket_device_v0", told["device"]["reason"])

    def test_none_is_asked_for(self) -> None:
        told = info(HOCKET_DEVICE_MODULE="none")
        self.assertIn("HOCKET_DEVICE_MODULE=none", told["device"]["reason"])

    def test_no_driver(self) -> None:
        told = info(HOCKET_DEVICE_MODULE=FAKE_DEVICE, FAKE_DEVICE="none")
        self.assertEqual(told["device"]["reason"], "there is no fake driver")
        if HAS_NCCL:
            self.assertEqual(told["nccl"]["reason"],
                             "it needs device memory: there is no fake driver")

    def test_the_real_module_without_a_driver(self) -> None:
        if not CUDA.endswith(".so"):
            self.skipTest(f"there is no CUDA module{CUDA}")
        told = info(HOCKET_DEVICE_MODULE=CUDA)["device"]
        if told["available"]:
            self.skipTest("there is a device here")
        self.assertRegex(told["reason"], "^(there is no NVIDIA driver|the NVIDIA driver )")

    def test_a_driver_and_no_nccl(self) -> None:
        if not HAS_NCCL:
            self.skipTest("this build has no NCCL")
        told = info(HOCKET_DEVICE_MODULE=FAKE_DEVICE, HOCKET_NCCL_LIBRARY="/nowhere/libnccl.so.2")
        self.assertTrue(told["device"]["available"])
        reason = told["nccl"]["reason"]
        self.assertTrue(reason.startswith("NCCL was not found: "), reason)
        self.assertIn("/nowhere/libnccl.so.2", reason)
        self.assertIn("install NCCL 2.18 or later, or name its file by HOCKET_NCCL_LIBRARY", reason)

    def test_nccl_is_too_old(self) -> None:
        if not HAS_NCCL:
            self.skipTest("this build has no NCCL")
        told = info(HOCKET_DEVICE_MODULE=FAKE_DEVICE, HOCKET_NCCL_LIBRARY=OLDER_NCCL)
        self.assertIn(f"NCCL 2.17.1 ({OLDER_NCCL}) is too old: 2.18 or later is needed",
                      told["nccl"]["reason"])

    def test_all_is_there(self) -> None:
        if not HAS_NCCL:
            self.skipTest("this build has no NCCL")
        told = info(HOCKET_DEVICE_MODULE=FAKE_DEVICE, HOCKET_NCCL_LIBRARY=NEW_NCCL)
        self.assertTrue(told["device"]["available"] and told["nccl"]["available"])
        self.assertIn("version 2.28.9", told["nccl"]["summary"])


if __name__ == "__main__":
    HOCKET, FAKE_DEVICE, NEW_NCCL, OLDER_NCCL, has_nccl, CUDA = sys.argv[1:7]
    HAS_NCCL = has_nccl == "nccl"
    unittest.main(verbosity=2, argv=sys.argv[:1])
