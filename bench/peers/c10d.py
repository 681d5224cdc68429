#!/usr/bin/python3
"""PyTorch's c10d with its Gloo backend, as a peer: by the rules of contest.hpp.

usage: c10d.py RANKS OPERATION SECONDS_PER_SIZE BYTES,BYTES...

It starts the ranks itself. What c10d only has in place (all_reduce, broadcast) is measured so; its
Gloo has no reduce_scatter."""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from statistics import mean
from typing import Any, NoReturn

import torch
import torch.distributed as c10d

WARMUPS, CALLS_MIN, WINDOWS_MIN, CALLS_MAX = 5, 5, 3, 100_000
FLOAT = 4
HAS_PARTS = ("all_gather",)

Call = Callable[[], None]


def slowest(value: float) -> float:
    result = torch.tensor([value], dtype=torch.float64)
    c10d.all_reduce(result, op=c10d.ReduceOp.MAX)
    return float(result[0])


def quantile(times: list[float], share: float) -> float:
    return slowest(sorted(times)[min(int(share * len(times)), len(times) - 1)])


def fitting(seconds: float, one: float, least: int) -> int:
    return max(least, min(int(seconds / max(one, 1e-9)), CALLS_MAX))


def timed(call: Call, count: int) -> list[float]:
    c10d.barrier()
    times = []
    last = time.perf_counter()
    for _ in range(count):
        call()
        now = time.perf_counter()
        times.append(now - last)
        last = now
    return times


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def starting_values(count: int, rank: int) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float32).remainder_(5).add_(rank + 1)


def trip(out: torch.Tensor, back: torch.Tensor, rank: int) -> Call:
    """There and back between ranks 0 and 1."""
    def there() -> None:
        c10d.send(out, 1)
        c10d.recv(back, 1)

    def here() -> None:
        c10d.recv(back, 0)
        c10d.send(out, 0)

    return (there, here)[rank] if rank < 2 else lambda: None


def stream(out: torch.Tensor, places: torch.Tensor, rank: int) -> Call:
    """A window of messages from rank 0 to rank 1, and one of 4 bytes back."""
    answer = torch.zeros(1)

    def send() -> None:
        for work in [c10d.isend(out, 1) for _ in places]:
            work.wait()
        c10d.recv(answer, 1)

    def receive() -> None:
        for work in [c10d.irecv(place, 0) for place in places]:
            work.wait()
        c10d.send(answer, 0)

    return (send, receive)[rank] if rank < 2 else lambda: None


def work_of(operation: str, count: int, rank: int, ranks: int) -> tuple[Call, Callable[[], bool]]:
    """A call, and whether the first one's result was right."""
    mine = starting_values(count, rank)
    if operation == "all_reduce":
        wanted = starting_values(count, 0).sub_(1).mul_(ranks).add_(ranks * (ranks + 1) // 2)
        return lambda: c10d.all_reduce(mine), lambda: torch.equal(mine, wanted)
    if operation == "broadcast":
        return lambda: c10d.broadcast(mine, 0), lambda: torch.equal(mine, starting_values(count, 0))
    if operation == "all_gather":
        all_parts = list(torch.zeros(ranks, count).unbind())
        return (lambda: c10d.all_gather(all_parts, mine),
                lambda: all(torch.equal(part, starting_values(count, i))
                            for i, part in enumerate(all_parts)))
    if operation == "barrier":
        return c10d.barrier, lambda: True
    if operation == "sendrecv":
        back = torch.zeros(count)
        return (trip(mine, back, rank),
                lambda: rank > 1 or torch.equal(back, starting_values(count, 1 - rank)))
    raise SystemExit(f"c10d.py: {operation} is not measured")


def bandwidth(count: int, rank: int, seconds: float) -> float:
    window = max(2, min((64 << 20) // max(count * FLOAT, 1), 64))
    call = stream(starting_values(count, rank), torch.zeros(window, count), rank)
    windows = fitting(seconds, slowest(sum(timed(call, 1))), WINDOWS_MIN)
    return count * FLOAT * window * windows / slowest(sum(timed(call, windows))) / 1e9


def measure(operation: str, seconds: float, size: int, rank: int, ranks: int) -> None:
    parts = ranks if operation in HAS_PARTS else 1
    count = 0 if operation == "barrier" else max(size // FLOAT // parts, 1)
    call, is_right = work_of(operation, count, rank, ranks)
    c10d.barrier()
    call()
    if slowest(0 if is_right() else 1) > 0:
        raise SystemExit(f"c10d.py: {operation}: wrong result")
    expected = quantile(timed(call, WARMUPS), 0.5)
    used = processor_seconds()
    times = timed(call, fitting(seconds, expected, CALLS_MIN))
    half = 2 if operation == "sendrecv" else 1
    row = {"bytes": count * FLOAT * parts, "iterations": len(times),
           "time_s": slowest(mean(times)) / half, "p50_s": quantile(times, 0.5) / half,
           "p99_s": quantile(times, 0.99) / half,
           "cpu_s": slowest((processor_seconds() - used) / len(times))}
    if operation == "sendrecv":
        row["bandwidth_gb_s"] = bandwidth(count, rank, seconds)
    if rank == 0:
        print(json.dumps(row), flush=True)


def run(store: str, rank: int, ranks: int, words: list[str]) -> None:
    torch.set_num_threads(1)
    c10d.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks,
                            timeout=timedelta(seconds=60))
    operation, seconds, sizes = words
    for size in sizes.split(","):
        measure(operation, float(seconds), int(size), rank, ranks)
    c10d.destroy_process_group()


def be_rank(*of_run: Any) -> NoReturn:
    """In a process of its own, which leaves what it has of its parent's alone."""
    try:
        run(*of_run)
        os._exit(0)
    finally:
        os._exit(1)


def main() -> int:
    ranks, words = int(sys.argv[1]), sys.argv[2:]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        others = []
        for rank in range(1, ranks):
            child = os.fork()
            if child == 0:
                be_rank(f"{folder}/store", rank, ranks, words)
            others.append(child)
        run(f"{folder}/store", 0, ranks, words)
        return max((abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) for child in others),
                   default=0)


if __name__ == "__main__":
    sys.exit(main())
