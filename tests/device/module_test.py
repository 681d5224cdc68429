#!/usr/bin/env python3
"""What the module of devices shows and needs: module_test.py MODULE. One function is to be seen of
it, so that its CUDA runtime can't meet another one in the process, and no driver may be needed to
load it."""

from __future__ import annotations

import subprocess
import sys
import unittest

MODULE = ""


def lines(*words: str) -> list[list[str]]:
    ran = subprocess.run([*words, MODULE], capture_output=True, text=True, check=True, timeout=60)
    return [line.split() for line in ran.stdout.splitlines()]


class Module(unittest.TestCase):
    def test_it_shows_one_function(self) -> None:
        seen = {words[2].split("@")[0] for words in lines("nm", "-D", "--defined-only")}
        self.assertEqual(seen, {"hocket_device_v0"})

    def test_cudart_is_in_it_nevertheless(self) -> None:
        names = {words[-1] for words in lines("nm") if words}
        self.assertIn("cudaMemcpyAsync", names)

    def test_it_needs_no_library_of_cuda(self) -> None:
        needed = [words[-1].strip("[]") for words in lines("readelf", "-d") if "(NEEDED)" in words]
        self.assertTrue(needed)
        self.assertFalse([name for name in needed if name.startswith(("libcud", "libnv", "libhocket"))],
                         needed)


if __name__ == "__main__":
    MODULE = sys.argv.pop(1)
    unittest.main(verbosity=2)
