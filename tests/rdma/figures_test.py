#!/usr/bin/env python3
"""Our verbs transport, alone and under all_reduce, beside perftest, in turns and in one boot: it is
neither much slower nor much later. Run in the machine of tools/rdma-vm with two adapters:
figures_test.py PROGRAM HOCKET BENCH [ROUNDS]. What is asked for here is less than what docs/verbs.md
says, as the machine has two emulated processors."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from statistics import median

MASTER = "10.77.0.1"
BANDWIDTH_MIN, LATENCY_MAX = 0.6, 2.5


def perftest(*command: str) -> list[float]:
    """The numbers in the last line of the client's table."""
    server = subprocess.Popen([*command, "-d", "rxe0", "-x", "1", "-F"], stdout=subprocess.DEVNULL)
    for _ in range(50):
        time.sleep(0.1)
        sockets = subprocess.run(["ss", "-ltn"], capture_output=True, text=True, check=True).stdout
        if ":18515 " in sockets:
            break
    text = subprocess.run([*command, "-d", "rxe1", "-x", "1", "-F", MASTER], capture_output=True,
                          text=True, check=True, timeout=60).stdout
    server.wait(timeout=60)
    rows = [line.split() for line in text.splitlines() if line[:2].strip().isdigit() or
            line.strip()[:1].isdigit()]
    return [float(word) for word in rows[-1]]


def ours(program: str, transport: str) -> dict[str, float]:
    return json.loads(subprocess.run([program, transport], capture_output=True, text=True,
                                     check=True, timeout=60).stdout)


def all_reduce(hocket: str, bench: str) -> dict[str, float]:
    """Of two ranks with an adapter each: MiB a second, both ways together."""
    own_adapter = 'HOCKET_IB_HCA==rxe$RANK exec "$0" "$@"'
    text = subprocess.run(
        [hocket, "run", "-n", "2", "--no-tag-output", "-x", "HOCKET_TRANSPORT=verbs", "--", "sh", "-c",
         own_adapter, bench, "all_reduce", "--sizes", "1M,4M", "-n", "16", "--json"],
        capture_output=True, text=True, check=True, timeout=60).stdout
    one, four = json.loads(text)["rows"]
    return {name: 2e9 * row["busbw_gb_s"] / (1 << 20) for name, row in (("1M", one), ("4M", four))}


def main() -> int:
    if not shutil.which("ib_write_bw"):
        print("skipped: perftest is not installed")
        return 77
    rounds: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        rounds.setdefault(name, []).append(value)

    for _ in range(int(sys.argv[4]) if len(sys.argv) > 4 else 3):
        for size, count, name in (("1048576", "64", "1M"), ("4194304", "16", "4M")):
            note(f"ib_write_bw {name}", perftest("ib_write_bw", "-s", size, "-n", count)[3])
        note("ib_write_bw -b 1M", perftest("ib_write_bw", "-b", "-s", "1048576", "-n", "64")[3])
        note("ib_send_lat 8", perftest("ib_send_lat", "-s", "8", "-n", "1000")[4])
        for transport in ("verbs", "straight", "tcp"):
            for name, value in ours(sys.argv[1], transport).items():
                note(f"{transport} {name}", value)
        for name, value in all_reduce(*sys.argv[2:4]).items():
            note(f"all_reduce {name}", value)
    for name, values in rounds.items():
        print(f"{name:20} median {median(values):8.1f}   {' '.join(f'{each:.1f}' for each in values)}")
    # Of the best rounds: what runs beside this takes from some more than from others.
    best = {name: max(values) for name, values in rounds.items()}
    ratios = {
        "stream 1M": best["verbs stream_1M"] / best["ib_write_bw 1M"],
        "stream 4M": best["verbs stream_4M"] / best["ib_write_bw 4M"],
        "both ways 1M": best["verbs both_1M"] / best["ib_write_bw -b 1M"],
        "straight 1M": best["straight stream_1M"] / best["ib_write_bw 1M"],
        "straight 4M": best["straight stream_4M"] / best["ib_write_bw 4M"],
        "all_reduce 1M": best["all_reduce 1M"] / best["ib_write_bw -b 1M"],
    }
    latency = min(rounds["verbs latency_8"]) / min(rounds["ib_send_lat 8"])
    for name, ratio in ratios.items():
        print(f"{name:14} {ratio:.2f} of perftest's bandwidth")
    print(f"latency        {latency:.2f} of perftest's")
    return 0 if min(ratios.values()) >= BANDWIDTH_MIN and latency <= LATENCY_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
