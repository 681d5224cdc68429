#!/usr/bin/env python3
"""What needs a GPU, and one is enough: correctness by NCCL and staged, failures, and figures.

Ranks that share the GPU get an NCCL_HOSTID each, by which NCCL takes them for hosts of their own and
goes over sockets. They take turns on the device: that is for correctness, and no figure of it is shown.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

BUILD = Path(sys.argv[1]).resolve()
HOCKET = str(BUILD / "tools" / "hocket")
BENCH = str(BUILD / "bench" / "hocket-bench")
DIRECT = str(BUILD / "bench" / "nccl_direct")
DEVICE = str(BUILD / "tests" / "device" / "device")
TROUBLES = str(BUILD / "tests" / "device" / "device_troubles")
MODULE = str(BUILD / "devices" / "hocket_cuda.so")
PACKAGE = BUILD / "bindings" / "python"
LAUNCH = Path(__file__).resolve().parents[1] / "torch" / "launch.py"
END = time.monotonic() + 460  # a little sooner than run.sh

OVERHEAD_US_MAX = 2.0
STAGED_SHARE_MIN = 0.8

# What each rank writes to its log, at level info, where NCCL is not used.
STAGED_LINE = "device memory is staged through the host"


@dataclasses.dataclass(frozen=True)
class Way:
    """How device memory goes: each run is held to it by the ranks' logs."""

    is_staged: bool
    variables: dict[str, str] = dataclasses.field(default_factory=dict)
    wrap: tuple[str, ...] = ()  # around the program

    def judge(self, log: str) -> None:
        lines = [line for line in log.splitlines() if STAGED_LINE in line]
        if lines and not self.is_staged:
            raise Failed(f"NCCL was not used: {lines[0]}")
        if self.is_staged and not lines:
            raise Failed(f"it was not staged: no rank said \"{STAGED_LINE}\"")


STAGED = Way(True, {"HOCKET_NCCL": "0"})
NCCL = Way(False)
# Ranks on one GPU: each a host of its own, as NCCL sees it.
SHARED = Way(False, {
    "NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_MNNVL_ENABLE": "0",
    "NCCL_RAS_ENABLE": "0", "CUDA_MODULE_LOADING": "EAGER",
}, ("sh", "-c", 'NCCL_HOSTID=rank-$RANK exec "$0" "$@"'))

Row = tuple[str, str, str, str]  # test, result, seconds, what there is to say


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def environment(variables: dict[str, str]) -> dict[str, str]:
    inherited = {
        name: text for name, text in os.environ.items() if not name.startswith(("HOCKET_", "FAKE_"))
    }
    module = os.environ.get("HOCKET_DEVICE_MODULE", MODULE)
    return {**inherited, "HOCKET_DEVICE_MODULE": module, **kept(), **variables}


def kept() -> dict[str, str]:
    """The user's choice of NCCL."""
    library = os.environ.get("HOCKET_NCCL_LIBRARY")
    return {"HOCKET_NCCL_LIBRARY": library} if library else {}


def run(command: list[str], variables: dict[str, str], limit: float = 90) -> tuple[str, str]:
    """What it wrote to stdout and to stderr."""
    limit = min(limit, END - time.monotonic())
    if limit < 1:
        raise Failed("no time left")
    try:
        ran = subprocess.run(command, env=environment(variables), capture_output=True, text=True,
                             timeout=limit, check=False)
    except subprocess.TimeoutExpired as late:
        raise Failed(f"no end within {limit:.0f} s") from late
    if ran.returncode == 77:
        raise Skipped(ran.stdout.strip().removeprefix("# skipped: "))
    if ran.returncode != 0:
        lines = (ran.stdout + ran.stderr).strip().splitlines()
        raise Failed(" | ".join(lines[-3:]) or f"exit status {ran.returncode}")
    return ran.stdout, ran.stderr


def ranks(count: int, program: list[str], way: Way | None, limit: float = 90) -> str:
    """What they write to stdout. Without a way they have no device memory for Hocket."""
    wrap = way.wrap if way else ()
    words = [HOCKET, "run", "-n", str(count), "--no-tag-output", "--", *wrap, *program]
    variables = way.variables if way else {}
    told, log = run(words, {**variables, "HOCKET_LOG_LEVEL": "info"}, limit)
    if way:
        way.judge(log)
    return told


def bench(count: int, arguments: list[str], way: Way | None) -> dict:
    told = json.loads(ranks(count, [BENCH, *arguments, "--json"], way))
    if told["wrong"]:
        raise Failed(f"{told['wrong']} elements are wrong")
    return told


def all_types(count: int, way: Way) -> str:
    arguments = ["all_reduce", "--memory", "device", "--sizes", "1200", "-n", "2", "-w", "0", "-d",
                 "all", "-o", "all"]
    told = bench(count, arguments, way)
    return f"{len(told['rows'])} pairs of type and op"


def all_collectives(count: int, way: Way) -> str:
    kinds = ("reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter",
             "all_to_all", "barrier", "scan", "exscan")
    for kind in kinds:
        bench(count, [kind, "--memory", "device", "--sizes", "24,1M", "-n", "2", "-w", "0"], way)
    return f"{len(kinds)} collectives"


def trouble(count: int, name: str) -> str:
    ranks(count, [TROUBLES, name], SHARED)
    return {"stuck": "the deadline ended it", "other-op": "all ranks were told both calls"}[name]


def overhead() -> str:
    """Of NCCL's launch through Hocket, at one rank: the best of three turns for each."""
    sizes = "8,64K"
    worst = []
    ours: dict[int, float] = {}
    theirs: dict[int, float] = {}
    for _ in range(3):
        told = bench(1, ["all_reduce", "--memory", "device", "--sizes", sizes, "-n", "2000", "-w",
                         "50"], NCCL)
        direct = json.loads(ranks(1, [DIRECT, "all_reduce", sizes, "2000"], None))
        for rows, best in ((told["rows"], ours), (direct["rows"], theirs)):
            for row in rows:
                best[row["bytes"]] = min(best.get(row["bytes"], 1.0), row["p50_s"])
    for size, best in ours.items():
        worst.append((best - theirs[size]) * 1e6)
    text = ", ".join(f"{size} B: {best * 1e6:.2f} us, NCCL alone {theirs[size] * 1e6:.2f}"
                     for size, best in ours.items())
    if max(worst) > OVERHEAD_US_MAX:
        raise Failed(f"{text}: more than {OVERHEAD_US_MAX} us added")
    return text


def staged_share() -> str:
    """Against the same all-reduce over memory of the host: what the copies leave of it."""
    sizes = ["--sizes", "64M", "-n", "20", "-w", "3"]
    shares = []
    for _ in range(3):
        host = bench(2, ["all_reduce", "--memory", "host", *sizes], None)["rows"][0]["p50_s"]
        staged = bench(2, ["all_reduce", "--memory", "device", *sizes], STAGED)["rows"][0]["p50_s"]
        shares.append(host / staged)
    share = sorted(shares)[1]
    text = f"{share:.2f} of the host's bandwidth at 64 MiB and 2 ranks"
    if share < STAGED_SHARE_MIN:
        raise Failed(f"{text}: less than {STAGED_SHARE_MIN}")
    return text


def checks(count: int, way: Way) -> str:
    ranks(count, [DEVICE], way, 120)
    return "sums, v-forms, batches, streams, hosts and devices together, mistakes"


def pytorch(count: int) -> str:
    """One rank by NCCL, more of them staged, as they share the GPU."""
    if not (PACKAGE / "hocket" / "_core.abi3.so").exists():
        raise Skipped("this build has no Python package")
    told, _ = run([sys.executable, str(LAUNCH), str(PACKAGE), str(count), "Device"], {}, 120)
    if "torch sees no GPU" in told:
        raise Skipped("torch sees no GPU")
    return "collectives, streams, futures, messages, gradients"


Test = tuple[str, str, Callable[[], str]]  # name, what it needs, what it does

TESTS: tuple[Test, ...] = (
    ("1 rank by NCCL: all checks", "nccl", lambda: checks(1, NCCL)),
    ("1 rank by NCCL: types and ops", "nccl", lambda: all_types(1, NCCL)),
    ("1 rank by NCCL: collectives", "nccl", lambda: all_collectives(1, NCCL)),
    ("2 ranks, staged over TCP: all checks", "cuda", lambda: checks(2, STAGED)),
    ("4 ranks, staged over TCP: all checks", "cuda", lambda: checks(4, STAGED)),
    ("2 ranks, staged: types and ops", "cuda", lambda: all_types(2, STAGED)),
    ("4 ranks, staged: collectives", "cuda", lambda: all_collectives(4, STAGED)),
    ("overhead of the offload, 1 rank", "nccl", overhead),
    ("staged share, 2 ranks", "cuda", staged_share),
    ("2 ranks by NCCL on one GPU: all checks", "nccl", lambda: checks(2, SHARED)),
    ("2 ranks by NCCL on one GPU: types and ops", "nccl", lambda: all_types(2, SHARED)),
    ("2 ranks by NCCL on one GPU: a stuck collective", "nccl", lambda: trouble(2, "stuck")),
    ("2 ranks by NCCL on one GPU: calls that differ", "nccl", lambda: trouble(2, "other-op")),
    ("4 ranks by NCCL on one GPU: all checks", "nccl", lambda: checks(4, SHARED)),
    ("4 ranks by NCCL on one GPU: collectives", "nccl", lambda: all_collectives(4, SHARED)),
    ("PyTorch, 1 rank by NCCL", "nccl", lambda: pytorch(1)),
    ("PyTorch, 2 ranks, staged", "cuda", lambda: pytorch(2)),
    ("PyTorch, 4 ranks, staged", "cuda", lambda: pytorch(4)),
)


def missing() -> tuple[dict[str, str], str]:
    """Why what a test needs is not here, if it is not; and what is."""
    document = json.loads(run([HOCKET, "info", "--json"], {})[0])
    device, nccl = document["devices"]
    reasons = {"cuda": device["reason"], "nccl": nccl["reason"]}
    here = [f"{each['name']}: {each['summary'] or 'no, ' + each['reason'].splitlines()[0]}"
            for each in (device, nccl)]
    return reasons, "; ".join(here)


def try_one(test: Test, reasons: dict[str, str]) -> Row:
    name, need, action = test
    if reasons[need]:
        return name, "skipped", "", reasons[need].splitlines()[0]
    begin = time.monotonic()
    try:
        result, text = "ok", action()
    except Skipped as why:
        result, text = "skipped", str(why)
    except (Failed, ValueError, KeyError) as failure:
        result, text = "FAILED", str(failure)
    row = (name, result, f"{time.monotonic() - begin:.1f}", text)
    print("  ".join(row), flush=True)
    return row


def main() -> int:
    reasons, here = missing()
    print(f"# {here}", flush=True)
    rows = [try_one(test, reasons) for test in TESTS]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    print(f"\n# {here}")
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]))
    results = [row[1] for row in rows]
    print(f"# {results.count('ok')} ok, {results.count('FAILED')} failed,"
          f" {results.count('skipped')} skipped")
    if "FAILED" in results:
        return 1
    if "ok" in results:
        return 0
    print(f"# skipped: {reasons['cuda'] or reasons['nccl']}")
    return 77


if __name__ == "__main__":
    sys.exit(main())
