"""Trains a network whose two large layers are split over the ranks. Needs torch 2.3.

    hocket run -n 2 -- python3 examples/torch/tensor_parallel.py
"""

import task
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def main() -> None:
    chosen = task.options(__doc__).parse_args()
    task.begin(chosen.backend)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = parallelize_module(task.network(chosen.width), mesh,
                               {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    task.train(model, optimizer, chosen, part=0)  # all ranks have the same batch
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
