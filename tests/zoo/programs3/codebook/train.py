"""VQ autoencoder of short pieces of movement."""

import argparse
import time

import torch
import torch.nn.functional as F
from quantize import Codebook
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MotionVQ(nn.Module):
    def __init__(self, joints=18, width=128, latent=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(joints, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(width, latent, 4, stride=2, padding=1),
        )
        self.codebook = Codebook(128, latent)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(latent, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(width, joints, 4, stride=2, padding=1),
        )

    def encode(self, x):
        return self.encoder(x).transpose(1, 2)

    def forward(self, x):
        quantized, commitment = self.codebook(self.encode(x))
        return self.decoder(quantized.transpose(1, 2)), commitment


@torch.no_grad()
def refresh_codes(model, motions, pieces, rounds=12):
    chosen = motions[torch.randperm(len(motions))[:pieces]]
    vectors = torch.cat([model.encode(part).flatten(0, 1) for part in chosen.split(256)])
    model.codebook.rebuild(vectors, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--refresh-every", type=int, default=20)
    parser.add_argument("--refresh-pieces", type=int, default=2400)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    time_axis = torch.linspace(0, 6.28, 64)
    speed = torch.rand(2400, 18, 1) * 3
    motions = torch.sin(speed * time_axis + 6.28 * torch.rand(2400, 18, 1))
    loader = DataLoader(TensorDataset(motions), batch_size=40, shuffle=True)
    model = MotionVQ()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)

    step = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for (x,) in loader:
            if step % args.refresh_every == 0:
                refresh_codes(model, motions, args.refresh_pieces)
            made, commitment = model(x)
            loss = F.mse_loss(made, x) + 0.25 * commitment
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
