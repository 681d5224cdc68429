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
SIZES = {4: 2000, 1024: 2000, 65536: 1000, 1 << 20: 200, 16 << 20: 20, 64 << 20: 6}


def measured(call: Callable[[], object], times: int) -> dict[str, float]:
    """In microseconds."""
    for _ in range(max(3, times // 10)):
        call()
    dist.barrier()
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        took.append(1e6 * (time.perf_counter() - begin))
    took.sort()
    return {"p50": statistics.median(took), "p99": took[int(0.99 * (len(took) - 1))]}


def ddp_step() -> dict[str, float]:
    """10.5 million parameters."""
    torch.manual_seed(1)
    model = nn.Sequential(*(each for _ in range(10) for each in (nn.Linear(1024, 1024), nn.ReLU())))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    points = torch.rand(16, 1024)

    def step() -> None:
        optimizer.zero_grad()
        parallel(points).square().mean().backward()
        optimizer.step()

    return measured(step, 20)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group(BACKEND, init_method=f"file://{STORE}", rank=RANK, world_size=SIZE)
    result = {}
    for size, times in SIZES.items():
        values = torch.zeros(size // 4)
        result[f"all_reduce {size}"] = measured(lambda: dist.all_reduce(values), times)
        result[f"future {size}"] = measured(
            lambda: dist.all_reduce(values, async_op=True).get_future().wait(), times)
    result["DDP step"] = ddp_step()
    if RANK == 0:
        print(json.dumps(result))
    dist.barrier()


if __name__ == "__main__":
    main()
