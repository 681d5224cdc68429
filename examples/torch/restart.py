"""Trains with checkpoints: when a rank dies, the launcher starts all again, and they go on.

    hocket run -n 2 --max-restarts 1 -- python3 examples/torch/restart.py state.pt --kill-at 30
    torchrun --nproc-per-node 2 --max-restarts 1 examples/torch/restart.py state.pt --kill-at 30

`--kill-at STEP` kills the last rank before that step, to show it. The last line shows the loss, which is
the same as without.
"""

import os
import signal
from pathlib import Path

import task
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def save(file: Path, state: dict[str, object]) -> None:
    """Under another name first: who is killed now leaves the last checkpoint as it was."""
    unfinished = file.with_suffix(".unfinished")
    torch.save(state, unfinished)
    unfinished.replace(file)


def main() -> None:
    parser = task.options(__doc__)
    parser.add_argument("checkpoint", type=Path, help="a file that the ranks of all hosts see")
    parser.add_argument("--every", type=int, default=10, help="steps between two checkpoints")
    parser.add_argument("--kill-at", type=int, default=-1, metavar="STEP")
    chosen = parser.parse_args()
    task.begin(chosen.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(task.network(chosen.width))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    first = 0
    if chosen.checkpoint.exists():
        state = torch.load(chosen.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
        if rank == 0:
            print(f"goes on from step {first}", flush=True)

    def step(count: int) -> torch.Tensor:
        if count == chosen.kill_at and rank == size - 1 and first == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 0 and count > first and count % chosen.every == 0:
            save(chosen.checkpoint, {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": count})
        return task.step(model, optimizer, chosen, count, rank)

    task.repeat(step, chosen, first)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
