"""Trains with Lightning. Needs the package lightning.

    hocket run -n 2 -- python3 examples/torch/lightning_ddp.py
"""

import argparse
import os

import lightning
import task
import torch
from lightning.pytorch.strategies import DDPStrategy


class Model(lightning.LightningModule):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.network = task.network(width)
        self.loss = torch.zeros(())

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        points, wanted = batch
        loss = (self.network(points) - wanted).square().mean()
        self.log("loss", loss, sync_dist=True, prog_bar=True)
        self.loss = loss.detach()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def batches(chosen: argparse.Namespace) -> torch.utils.data.DataLoader:
    samples = [task.batch(step, 0, chosen.rows, chosen.width) for step in range(2 * chosen.steps)]
    points, wanted = (torch.cat(each) for each in zip(*samples))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(points, wanted), chosen.rows)


def main() -> None:
    chosen = task.options(__doc__).parse_args()
    task.make_known(chosen.backend)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        num_nodes=int(os.environ["GROUP_WORLD_SIZE"]), max_steps=chosen.steps, logger=False,
        enable_checkpointing=False, enable_model_summary=False,
        strategy=DDPStrategy(process_group_backend=chosen.backend))
    model = Model(chosen.width)
    trainer.fit(model, batches(chosen))
    loss = trainer.strategy.reduce(model.loss)
    if trainer.is_global_zero:
        print(f"{trainer.world_size} ranks, {chosen.backend}: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
