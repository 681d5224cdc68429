"""Trains with DistributedDataParallel, where each rank keeps a part of the optimizer's state.

    hocket run -n 2 -- python3 examples/torch/zero.py
"""

import task
import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    chosen = task.options(__doc__).parse_args()
    task.begin(chosen.backend)
    model = DistributedDataParallel(task.network(chosen.width))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=1e-4)
    task.train(model, optimizer, chosen)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
