"""Trains with Accelerate. Needs the package accelerate.

    hocket run -n 2 -- python3 examples/torch/accelerate_ddp.py
"""

import task
import torch
import torch.distributed as dist
from accelerate import Accelerator


def main() -> None:
    chosen = task.options(__doc__).parse_args()
    task.begin(chosen.backend)
    accelerator = Accelerator(cpu=True)
    model = task.network(chosen.width)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))

    def step(count: int) -> torch.Tensor:
        points, wanted = task.batch(count, accelerator.process_index, chosen.rows, chosen.width)
        optimizer.zero_grad()
        loss = (model(points) - wanted).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        return loss.detach()

    task.repeat(step, chosen)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
