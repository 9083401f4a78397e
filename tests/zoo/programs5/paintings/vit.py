"""Which school is a painting of? A vision transformer in Lightning."""

import argparse
import time

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ViT(L.LightningModule):
    def __init__(self, dim=256, depth=2, n_schools=8):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, 8, 8)
        self.position = nn.Parameter(0.02 * torch.randn(1, 64, dim))
        layer = nn.TransformerEncoderLayer(
            dim, 4, 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, n_schools)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.encoder(x).mean(1))

    def training_step(self, batch, batch_idx):
        paintings, schools = batch
        return nn.functional.cross_entropy(self(paintings), schools)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", default="32-true")
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    L.seed_everything(0)
    torch.set_num_threads(1)
    schools = torch.randint(8, (960,))
    paintings = torch.randn(960, 3, 64, 64) + schools[:, None, None, None] / 4
    loader = DataLoader(TensorDataset(paintings, schools), 12, shuffle=True)
    trainer = L.Trainer(
        accelerator="cpu",
        max_steps=args.steps,
        precision=args.precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = ViT()
    start = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
