"""Trains with Lightning on ranks that any launcher has started. Needs the package lightning.

    mpirun -np 2 python3 examples/torch/lightning_anywhere.py
    srun -n 2 python3 examples/torch/lightning_anywhere.py

Lightning starts processes itself where it does not know the launcher. Here the program connects its
ranks, and passes the result to Lightning.
"""

import socket

import lightning
import task
import torch
import torch.distributed as dist
from lightning.fabric.plugins.environments import ClusterEnvironment
from lightning.pytorch.strategies import DDPStrategy
from lightning_ddp import Model, batches


class Connected(ClusterEnvironment):
    """The ranks of the process group that there is."""

    creates_processes_externally = True
    main_address = ""  # for those who would connect now
    main_port = 0

    def __init__(self) -> None:
        hosts = [""] * dist.get_world_size()
        dist.all_gather_object(hosts, socket.gethostname())
        here = hosts[dist.get_rank()]
        self.nodes = list(dict.fromkeys(hosts))
        self.node = self.nodes.index(here)
        self.local_ranks = [rank for rank, host in enumerate(hosts) if host == here]

    @staticmethod
    def detect() -> bool:
        return dist.is_initialized()

    def world_size(self) -> int:
        return dist.get_world_size()

    def global_rank(self) -> int:
        return dist.get_rank()

    def local_rank(self) -> int:
        return self.local_ranks.index(dist.get_rank())

    def node_rank(self) -> int:
        return self.node

    def set_world_size(self, size: int) -> None:
        """The process group has it."""

    def set_global_rank(self, rank: int) -> None:
        """The process group has it."""


def main() -> None:
    chosen = task.options(__doc__).parse_args()
    task.begin(chosen.backend, "hocket://")
    connected = Connected()
    trainer = lightning.Trainer(
        accelerator="cpu", devices=len(connected.local_ranks), num_nodes=len(connected.nodes),
        max_steps=chosen.steps, logger=False, enable_checkpointing=False, enable_model_summary=False,
        plugins=[connected], strategy=DDPStrategy(process_group_backend=chosen.backend))
    model = Model(chosen.width)
    trainer.fit(model, batches(chosen))
    loss = trainer.strategy.reduce(model.loss)
    if trainer.is_global_zero:
        print(f"{trainer.world_size} ranks, {chosen.backend}: loss {loss.item():.6f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
