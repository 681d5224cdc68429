"""What the examples beside this file train, and how they report it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn


def options(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--backend", default="hocket", help="hocket (default), gloo, …")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--width", type=int, default=1000, help="neurons per layer")
    parser.add_argument("--rows", type=int, default=32, help="rows in each rank's batch")
    return parser


def make_known(backend: str) -> None:
    """To torch before 2.14, which does not look for it."""
    if backend == "hocket":
        import hocket.torch  # noqa: F401


def begin(backend: str, init_method: str | None = None) -> None:
    """Joins the other ranks, and seeds torch alike on all of them."""
    torch.set_num_threads(1)
    make_known("hocket" if init_method else backend)
    dist.init_process_group(backend, init_method)
    torch.manual_seed(1)


def network(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 1))


def batch(step: int, rank: int, rows: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, and a function of them that can be learned."""
    source = torch.Generator().manual_seed(1_000_003 * step + rank)
    points = torch.rand(rows, width, generator=source)
    return points, points.square().mean(1, keepdim=True)


def step(model: nn.Module, optimizer: torch.optim.Optimizer, chosen: argparse.Namespace, count: int,
         part: int) -> torch.Tensor:
    """Trains on the batch of rank `part` for this step, and returns the loss."""
    points, wanted = batch(count, part, chosen.rows, chosen.width)
    optimizer.zero_grad()
    loss = (model(points) - wanted).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, chosen: argparse.Namespace,
          part: int | None = None) -> None:
    """Trains on this rank's batches, or on those of rank `part`, and prints the loss."""
    number = dist.get_rank() if part is None else part
    repeat(lambda count: step(model, optimizer, chosen, count, number), chosen)


def show_progress(count: int, steps: int, loss: torch.Tensor) -> None:
    """One line that changes in a terminal; now and then a line elsewhere, as under `hocket run`."""
    if dist.get_rank() > 0:
        return
    text = f"step {count} of {steps}, loss {loss.item():.4f}"
    if sys.stderr.isatty():
        print(f"\r{text} ", end="", file=sys.stderr, flush=True)
    elif count % max(1, steps // 5) == 0:
        print(text, file=sys.stderr, flush=True)


def repeat(one_step: Callable[[int], torch.Tensor], chosen: argparse.Namespace, first: int = 0) -> None:
    """Calls `one_step` for each step, and shows progress. The last line has the mean of the ranks' losses."""
    times = []
    loss = torch.zeros(())
    for count in range(first, chosen.steps):
        begin_of_step = time.perf_counter()
        loss = one_step(count)
        times.append(time.perf_counter() - begin_of_step)
        show_progress(count + 1, chosen.steps, loss)
    mean = loss.clone()
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, {chosen.backend}: loss {mean.item():.6f}, "
              f"median step {1e3 * sorted(times)[len(times) // 2]:.1f} ms")
