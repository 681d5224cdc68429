"""Trains with fully_shard: each rank keeps a part of the parameters. Needs torch 2.6.

    hocket run -n 2 -- python3 examples/torch/fsdp.py
    hocket run -n 2 -- python3 examples/torch/fsdp.py --checkpoint DIR   # resumes from DIR, and saves there
"""

from pathlib import Path

import task
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def main() -> None:
    parser = task.options(__doc__)
    parser.add_argument("--checkpoint", type=Path, help="a folder that all hosts see")
    chosen = parser.parse_args()
    task.begin(chosen.backend)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = task.network(chosen.width)
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    if chosen.checkpoint and (chosen.checkpoint / ".metadata").exists():
        weights, moments = get_state_dict(model, optimizer)
        dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=chosen.checkpoint)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    task.train(model, optimizer, chosen)
    if chosen.checkpoint:
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=chosen.checkpoint)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
