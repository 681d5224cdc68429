"""Trains a small network on all ranks with DistributedDataParallel.

    hocket run -n 2 -- python3 examples/torch/ddp.py                   # over Hocket
    hocket run -n 2 -- python3 examples/torch/ddp.py --backend gloo    # to compare

Also under torchrun. The last line says the loss, which is the same with every backend, and the time
of a step.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

try:
    import hocket.torch  # noqa: F401
except ImportError:
    pass  # --backend gloo does not need it


def batch(step: int, rank: int, rows: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, and a function of them that can be learned."""
    source = torch.Generator().manual_seed(1_000_003 * step + rank)
    points = torch.rand(rows, width, generator=source)
    return points, points.square().mean(1, keepdim=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="hocket", help="hocket (default), gloo, …")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--width", type=int, default=1000, help="of the layers: two have its square")
    parser.add_argument("--rows", type=int, default=32, help="of a rank's batch")
    options = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group(options.backend)
    rank = dist.get_rank()
    torch.manual_seed(1)
    width = options.width
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                          nn.Linear(width, 1))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)

    times = []
    loss = torch.zeros(())
    for step in range(options.steps):
        begin = time.perf_counter()
        points, wanted = batch(step, rank, options.rows, width)
        optimizer.zero_grad()
        loss = (parallel(points) - wanted).square().mean()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        if rank == 0 and sys.stderr.isatty():
            print(f"\rstep {step + 1} of {options.steps}, loss {loss.item():.4f} ", end="", file=sys.stderr)
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    if rank == 0:
        print(f"{dist.get_world_size()} ranks, {options.backend}: loss {mean.item():.6f}, "
              f"median step {1e3 * sorted(times)[len(times) // 2]:.1f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
