"""Fill in missing patches of kelp-forest surveys (masked autoencoder)."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from trainer import Trainer, TrainerConfig


class MaskedAutoencoder(nn.Module):
    def __init__(self, patches=36, patch_dim=192, dim=192, depth=3):
        super().__init__()
        self.embed = nn.Linear(patch_dim, dim)
        self.position = nn.Parameter(torch.randn(1, patches, dim) * 0.02)
        self.hole = nn.Parameter(torch.zeros(1, 1, dim))
        layer = nn.TransformerEncoderLayer(
            dim, 4, 4 * dim, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.out = nn.Linear(dim, patch_dim)

    def forward(self, patches, hidden):
        x = torch.where(hidden[..., None], self.hole, self.embed(patches)) + self.position
        error = F.mse_loss(self.out(self.encoder(x)), patches, reduction="none").mean(-1)
        return (error * hidden).sum() / hidden.sum()


def surveys(batch_size, seed):
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(12, 36 * 192, generator=g) / 4
    while True:
        patches = (torch.randn(batch_size, 12, generator=g) @ basis).view(batch_size, 36, 192)
        yield patches, torch.rand(batch_size, 36, generator=g) < 0.6


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-best-every", type=int, default=1)
    args = parser.parse_args()
    config = TrainerConfig(save_best_every=args.save_best_every)
    torch.manual_seed(config.seed)
    torch.set_num_threads(1)
    trainer = Trainer(MaskedAutoencoder(), surveys(8, config.seed), config)
    seconds = trainer.fit()
    print(f"trained {trainer.state.step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
