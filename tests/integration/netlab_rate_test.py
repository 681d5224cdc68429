#!/usr/bin/env python3
"""tools/netlab: how fast links and uplinks are, how long, and what they lose.

It wants the machine to itself.
"""

from __future__ import annotations

import os
import sys
import unittest

import netlab
from netlab import TRAFFIC, Case

RECEIVE, SEND = f"{TRAFFIC} receive", f"{TRAFFIC} send"


def setUpModule() -> None:
    netlab.skip_where_there_can_be_none()


class Rates(Case):
    def test_a_link_has_its_rate(self) -> None:
        script = f"{RECEIVE} & $NETLAB_RSH h2 '{SEND} h1'; wait"
        self.assert_rate(self.in_lab(script, "--rate", "200mbit"), 200)

    def test_uplinks_are_shared_by_a_leafs_hosts(self) -> None:
        """Four hosts in two leaves, whose uplinks have half the rate of a host."""
        script = f"""
            $NETLAB_RSH h3 '{RECEIVE}' & $NETLAB_RSH h4 '{RECEIVE}' & {SEND} h3 &
            $NETLAB_RSH h2 '{SEND} h4'; wait; echo
            $NETLAB_RSH h2 '{RECEIVE}' & {SEND} h2; wait"""
        said = self.in_lab(script, "--hosts", "4", "--rate", "200mbit", "--hosts-per-leaf", "2",
                           "--oversubscription", "4")
        across, inside = said.split("\n\n")
        self.assert_rate(sum(map(float, across.split())), 100)
        self.assert_rate(inside, 200)

    def test_a_share_of_the_frames_is_lost(self) -> None:
        count = 5000
        script = f"""{TRAFFIC} count | {{ read ready
            $NETLAB_RSH h2 '{TRAFFIC} throw h1 {count}'; cat; }}"""
        lost = 1 - int(self.in_lab(script, "--loss", "10%")) / count
        self.assertAlmostEqual(lost, 0.1, delta=0.03)  # seven times the deviation
        self.assertEqual(int(self.in_lab(script)), count)

    def test_rails_have_a_rate_each(self) -> None:
        script = f"""
            $NETLAB_RSH h2 '{RECEIVE}' & $NETLAB_RSH h3 '{RECEIVE}' &
            {SEND} 10.77.0.2 & {SEND} 10.77.1.3; wait"""
        rates = self.in_lab(script, "--hosts", "3", "--rails", "2", "--rate", "200mbit").split()
        self.assertEqual(len(rates), 2)
        for each in rates:
            self.assert_rate(each, 200)

    def test_a_link_has_its_length(self) -> None:
        """What it carries is whole, and comes at the link's rate."""
        stream = f"{RECEIVE} & $NETLAB_RSH h2 '{SEND} h1'; wait"
        count = 5000
        datagrams = f"{TRAFFIC} count | {{ read ready; $NETLAB_RSH h2 '{TRAFFIC} throw h1 {count}'; cat; }}"
        questions = f"{TRAFFIC} echo 50 | {{ read ready; $NETLAB_RSH h2 '{TRAFFIC} ask h1 50'; }}"
        rate, all_of_them, answers, trip_ms = self.in_lab(
            f"{stream}; {datagrams}; {questions}", "--rate", "200mbit", "--delay", "5ms").split()
        self.assert_rate(rate, 200)
        self.assertEqual((all_of_them, answers), (str(count), "50"))
        self.assertGreaterEqual(float(trip_ms), 10)
        self.assertLess(float(trip_ms), 12)


if __name__ == "__main__":
    netlab.NETLAB, os.environ["NETLAB_DELAY_LINE"] = sys.argv[1:3]
    del sys.argv[1:3]
    unittest.main(verbosity=2)  # with the reasons of what is skipped
