"""What docs/reliability.md says besides the table of deaths: of ranks that disagree, of simulated deaths,
of records, and of what all of it costs. Each function measures one section, and gives its lines and
what is wrong."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "integration"))
from surroundings import environment, free_port  # noqa: E402

TESTS = Path(__file__).resolve().parent.parent
PATIENCE_S = 3600
Section = tuple[list[str], list[str]]

TOLD_MAX_MS = 100
IDLE_RANKS = 64
IDLE_S = 30
IDLE_CPU_MAX = 0.001  # of a core
IDLE_OWN_MIB_MAX = 1.0
IDLE_MIB_MAX = 6.5
RECORD_PAIRS = 100
RECORD_NS_MAX = 20
RECORDS_MAX = 1.02  # an operation of 1 KiB with records, by one without; 1 % is the aim


def run(command: list[str | Path], **variables: object) -> str:
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                         timeout=PATIENCE_S, env=environment(**variables))
    if ran.returncode != 0:
        raise OSError(f"{' '.join(str(word) for word in command)}: {(ran.stdout + ran.stderr)[-2000:]}")
    return ran.stdout


def disagreement(build: Path) -> Section:
    lines = [
        "Two calls that differ in operation, count, type, op or root: one rank makes one, and all others make the other. Every",
        "rank that is told success must have what its own call asked for, and every rank must soon fail, with both calls in its",
        "error. The pairs also include a rank that leaves instead of calling. The time is from the call to the last rank's error.",
        "", "| ranks | pairs of calls | false successes | both calls named on all ranks | p50 / p99, ms | max, ms |",
        "|---|---|---|---|---|---|",
    ]
    wrong = []
    program = build / "tests/integration/mismatches"
    cases = {str(ranks): (ranks, [program]) for ranks in range(2, 9)}
    cases["3, each pair both ways, also of 300,000 elements"] = (3, [program, "all"])
    for case, (ranks, command) in cases.items():
        text = run([build / "tools/hocket", "run", "-n", str(ranks), "--", *command])
        found = re.search(r"(\d+) pairs .* in (\d+), after ([\d.]+) ms \(p50\), ([\d.]+) \(p99\), ([\d.]+) \(max\)", text)
        if not found:
            raise OSError(text[-2000:])
        # Zero: the program fails, and run() raises, if a success was false.
        lines.append(f"| {case} | {found[1]} | 0 | {found[2]} | {found[3]} / {found[4]} | {found[5]} |")
        if found[1] != found[2] or float(found[5]) > TOLD_MAX_MS:
            wrong.append(lines[-1])
    return lines, wrong


def simulation(build: Path) -> Section:
    text = run([build / "tests/sim/sim_tests", "--filenames-as-tags", "[#deaths_test]"], TEST_RUNS=8)
    deaths, size = re.findall(r"(\d+) deaths in worlds of up to (\d+) ranks", text)[-1]
    return [
        f"In a simulated world each rank died before and after each step of each plan of up to {size} ranks: {int(deaths):,} deaths.",
        "Every survivor ended in time, with the right result or an error that named the dead rank, and wrote to no buffer after",
        "that. All survivors were told the same cause within 100 ms of simulated time, with operation and step if any rank was in",
        "one. The simulation assumes that a death is noticed within 7 ms and that a notice takes at most 3 ms.",
    ], []


def records(build: Path) -> Section:
    text = run([sys.executable, TESTS / "integration/trace_test.py", build / "tools/hocket",
                build / "tests/integration/traced", "Faults"])
    faults = re.search(r"(\d+) of (\d+) faults", text)
    if not faults:
        raise OSError(text[-2000:])
    each = nanoseconds_of_a_record(build)
    ratios = ratios_of_records(build)
    wrong = []
    if each > RECORD_NS_MAX:
        wrong.append(f"a record takes {each:.1f} ns")
    if ratios["1K"] > RECORDS_MAX:
        wrong.append(f"an operation of 1 KiB with records takes {ratios['1K']:.3f} times as long")
    return [
        f"- {faults[0]}, of ranks that were killed, stopped, late, left or called something else: the first sentence of",
        "  `hocket trace` named rank and operation, and the step where any rank waited in one.",
        f"- To record an operation takes {each:.1f} ns in a loop, without the time to read the clock.",
        "- Time of an all_reduce of two ranks over TCP with records, divided by the time without (medians of"
        f" {RECORD_PAIRS} pairs): {ratios['8']:.3f} at 8 B, {ratios['1K']:.3f} at 1 KiB.",
    ], wrong


def nanoseconds_of_a_record(build: Path) -> float:
    def seconds(runs: int) -> float:
        begin = time.monotonic()
        run([build / "bench/hot_paths", "record an operation", str(runs)])
        return time.monotonic() - begin

    runs = 20_000_000
    return statistics.median((seconds(runs) - seconds(1)) / runs * 1e9 for _ in range(5))


def ratios_of_records(build: Path) -> dict[str, float]:
    """By size. Runs differ by more than what is measured, and the first of a pair has no advantage."""
    def seconds(size: str, trace: str) -> float:
        text = run([build / "bench/hocket-bench", "all_reduce", "--ranks", "2", "--transport", "tcp", "--sizes", size,
                    "-n", "20000", "-c", "0", "--format", "json"], HOCKET_TRACE=trace)
        return float(json.loads(text)["rows"][0]["p50_s"])

    def ratio(size: str, first: str) -> float:
        took = {trace: seconds(size, trace) for trace in (first, "off" if first == "on" else "on")}
        return took["on"] / took["off"]

    return {size: statistics.median(ratio(size, "on" if pair % 2 else "off") for pair in range(RECORD_PAIRS))
            for size in ("8", "1K")}


def processor_ns(pid: int) -> int:
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def memory_mib(pid: int) -> tuple[float, float]:
    """All that is resident, and what of it no other process shares."""
    text = Path(f"/proc/{pid}/status").read_text()
    return tuple(int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024 for name in ("VmRSS", "RssAnon"))


def idleness(build: Path) -> Section:
    port, begin = free_port(), time.monotonic()
    ranks = [subprocess.Popen([build / "tests/reliability/rank", "nothing"], stdout=subprocess.PIPE, text=True,
                              env=environment(RANK=rank, WORLD_SIZE=IDLE_RANKS, MASTER_ADDR="127.0.0.1",
                                              MASTER_PORT=port, HOCKET_SECRET="hush", HOCKET_TRANSPORT="tcp"))
             for rank in range(IDLE_RANKS)]
    try:
        for each in ranks:
            each.stdout.readline()
        joined_s = time.monotonic() - begin
        time.sleep(3)
        before = [processor_ns(each.pid) for each in ranks]
        time.sleep(IDLE_S)
        shares = [(processor_ns(each.pid) - past) / (IDLE_S * 1e9) for each, past in zip(ranks, before, strict=True)]
        resident, own = zip(*(memory_mib(each.pid) for each in ranks), strict=True)
    finally:
        for each in ranks:
            each.kill()
            each.communicate()
    wrong = []
    if statistics.mean(shares) > IDLE_CPU_MAX:
        wrong.append(f"an idle rank takes {100 * statistics.mean(shares):.3f} % of a core")
    if statistics.median(resident) > IDLE_MIB_MAX:
        wrong.append(f"an idle rank has {statistics.median(resident):.2f} MiB resident")
    if statistics.median(own) > IDLE_OWN_MIB_MAX:
        wrong.append(f"an idle rank has {statistics.median(own):.2f} MiB of its own")
    return [
        f"- {IDLE_RANKS} ranks that do nothing, {IDLE_S} s: {100 * statistics.mean(shares):.3f} % of a core each (mean),",
        f"  {100 * max(shares):.3f} % (most), for the signs of life.",
        f"- Memory of such a rank after one all_reduce: {statistics.median(resident):.2f} MiB resident (median), of which "
        f"{statistics.median(own):.2f} MiB",
        "  are its own and not code that all ranks share.",
        f"- All {IDLE_RANKS} had joined and reduced {joined_s:.2f} s after the first was started, on {os.cpu_count()} processors.",
    ], wrong


SECTIONS: dict[str, Callable[[Path], Section]] = {
    "Ranks that disagree": disagreement,
    "Every death in simulation": simulation,
    "Records": records,
    "What it costs to be watched": idleness,
}
