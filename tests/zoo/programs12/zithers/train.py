"""Tones of zithers: an encoder of frames in Lightning."""

import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 75


class Tones(L.LightningModule):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(160, 288), nn.ReLU()]
        for _ in range(2):
            layers += [nn.Linear(288, 288), nn.ReLU()]
        self.net = nn.Sequential(*layers, nn.Linear(288, 12))

    def on_train_start(self):
        self.start = time.perf_counter()

    def on_train_end(self):
        self.seconds = time.perf_counter() - self.start

    def training_step(self, batch, _):
        frames, tones = batch
        logits = self.net(frames)
        return nn.functional.cross_entropy(logits.flatten(0, 1), tones.flatten())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    L.seed_everything(0)
    torch.set_num_threads(1)
    frames = torch.randn(STEPS * 16, 128, 160)
    tones = frames[..., :12].argmax(dim=-1)
    loader = DataLoader(TensorDataset(frames, tones), batch_size=16, shuffle=True)
    model = Tones()
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {model.seconds:.3f} s")


if __name__ == "__main__":
    main()
