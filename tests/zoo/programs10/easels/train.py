"""Compresses descriptors of paintings with an autoencoder; follows it in TensorBoard."""

import argparse
import time

import lightning as L
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


class Autoencoder(L.LightningModule):
    def __init__(self, inputs=256, width=448, code=64, every=1):
        super().__init__()
        self.every = every
        self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, code))
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, inputs))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("loss", loss)
        return loss

    def on_train_batch_end(self, outputs, batch, batch_idx):
        if self.global_step % self.every == 0:
            self.follow()

    def follow(self):
        board = self.logger.experiment
        for name, parameter in self.named_parameters():
            board.add_histogram(f"weight/{name}", parameter, self.global_step)
            board.add_histogram(f"grad/{name}", parameter.grad, self.global_step)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(90)
    dataset = TensorDataset(torch.randn(20 * 512, 64) @ torch.randn(64, 256) / 8)
    sampler = BatchSampler(RandomSampler(dataset), 512, drop_last=True)
    loader = DataLoader(dataset, sampler=sampler, batch_size=None)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=5,
        logger=TensorBoardLogger("boards"),
        log_every_n_steps=20,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Autoencoder(every=args.every)
    started = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
