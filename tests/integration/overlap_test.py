#!/usr/bin/env python3
"""Operations in flight together pay where they wait for the network: between two emulated hosts.

    overlap_test.py NETLAB DELAY-LINE HOCKET OVERLAP

It wants the machine to itself.
"""

from __future__ import annotations

import os
import re
import sys
import unittest
from pathlib import Path

import netlab

TIMES_AS_FAST = 1.5
HOCKET, OVERLAP = "", ""


def setUpModule() -> None:
    netlab.skip_where_there_can_be_none()


class Between(netlab.Case):
    def test_four_at_once(self) -> None:
        script = f"HOCKET_OVERLAP=4 {HOCKET} run --hosts $NETLAB_HOSTS -n 1 --rsh $NETLAB_RSH {OVERLAP} time"
        said = self.in_lab(script, "--rate", "none", "--delay", "100us")
        print(said, file=sys.stderr)
        found = re.search(r": ([\d.]+) times as fast", said)
        assert found, said
        self.assertGreaterEqual(float(found[1]), TIMES_AS_FAST)


if __name__ == "__main__":
    netlab.NETLAB, os.environ["NETLAB_DELAY_LINE"], HOCKET, OVERLAP = (
        str(Path(program).absolute()) for program in sys.argv[1:5])
    unittest.main(argv=sys.argv[:1], verbosity=2)
