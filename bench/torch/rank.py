"""What compare.py measures on one rank; rank 0 prints it as JSON.

usage: rank.py BACKEND STORE RANK SIZE
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn

BACKEND, STORE, RANK, SIZE = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if BACKEND == "hocket":
    import hocket.torch  # noqa: F401

# Bytes, and how often each is measured.
SIZES = {4: 2000, 1024: 2000, 16 << 10: 1000, 64 << 10: 1000, 256 << 10: 300, 1 << 20: 200, 4 << 20: 60,
         16 << 20: 20, 64 << 20: 6}


def measured(call: Callable[[], object], times: int) -> dict[str, float]:
    """In seconds, of the slowest rank."""
    for _ in range(max(3, times // 10)):
        call()
    dist.barrier()
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        took.append(time.perf_counter() - begin)
    took.sort()
    figures = {"p50_s": statistics.median(took), "p99_s": took[int(0.99 * (len(took) - 1))]}
    slowest = torch.tensor(list(figures.values()), dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return dict(zip(figures, slowest.tolist()))


def ddp_step(rows: int) -> dict[str, float]:
    """10.5 million parameters. The fewer rows, the less arithmetic."""
    torch.manual_seed(1)
    model = nn.Sequential(*(each for _ in range(10) for each in (nn.Linear(1024, 1024), nn.ReLU())))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    points = torch.rand(rows, 1024)

    def step() -> None:
        optimizer.zero_grad()
        parallel(points).square().mean().backward()
        optimizer.step()

    return measured(step, 20)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group(BACKEND, init_method=f"file://{STORE}", rank=RANK, world_size=SIZE)
    result = []

    def note(what: str, size: int, figures: dict[str, float]) -> None:
        result.append({"what": what, "bytes": size, **figures})

    for size, times in SIZES.items():
        values = torch.zeros(size // 4)
        note("all_reduce", size, measured(lambda: dist.all_reduce(values), times))
        note("all_reduce by a future", size, measured(
            lambda: dist.all_reduce(values, async_op=True).get_future().wait(), times))
    note("new_group", 0, measured(dist.new_group, 20))
    for rows in (1, 16):
        note(f"DDP step of {rows} rows a rank", 4 * 1024 * 1025 * 10, ddp_step(rows))
    if RANK == 0:
        print(json.dumps(result))
    dist.barrier()


if __name__ == "__main__":
    main()
