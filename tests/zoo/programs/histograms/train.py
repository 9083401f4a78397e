"""An autoencoder that is watched in TensorBoard."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class AutoEncoder(nn.Module):
    def __init__(self, inputs=256, code=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 512), nn.ReLU(), nn.Linear(512, code))
        self.decoder = nn.Sequential(nn.Linear(code, 512), nn.ReLU(), nn.Linear(512, inputs))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="logs")
    parser.add_argument("--histogram-every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = torch.randn(120 * 64, 24) @ torch.randn(24, 256)
    loader = DataLoader(TensorDataset(data), batch_size=64, shuffle=True)
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    writer = SummaryWriter(args.logdir)
    step = 0
    start = time.perf_counter()
    for (batch,) in loader:
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        writer.add_scalar("loss", loss.item(), step)
        if step % args.histogram_every == 0:
            for name, parameter in model.named_parameters():
                writer.add_histogram(name, parameter, step)
        step += 1
    writer.close()
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
