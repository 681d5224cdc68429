"""Trains a small network on all ranks with DistributedDataParallel.

    hocket run -n 2 -- python3 examples/torch/ddp.py                   # over Hocket
    hocket run -n 2 -- python3 examples/torch/ddp.py --backend gloo    # to compare

It also runs under torchrun. The last line shows the loss, which is the same with every backend, and
the median time of a step.
"""

import task
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    chosen = task.options(__doc__).parse_args()
    task.begin(chosen.backend)
    model = DistributedDataParallel(task.network(chosen.width))
    task.train(model, torch.optim.SGD(model.parameters(), lr=0.01), chosen)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
