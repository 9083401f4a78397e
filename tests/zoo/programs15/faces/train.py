# autoencoder on face crops, tensorboard for the group meeting
import argparse
import time

import torch
import torch.nn as nn
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(11)
torch.set_num_threads(1)

parser = argparse.ArgumentParser()
parser.add_argument("--summary-every", type=int, default=3)
parser.add_argument("--steps", type=int, default=64)
args = parser.parse_args()


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(48 * 144, 32),
        )
        self.dec = nn.Sequential(
            nn.Linear(32, 48 * 144),
            nn.ReLU(),
            nn.Unflatten(1, (48, 12, 12)),
            nn.ConvTranspose2d(48, 24, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(24, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.dec(self.enc(x))


faces = torch.rand(2000, 1, 48, 48)
model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
writer = SummaryWriter("logs")
start = time.perf_counter()
for step in range(args.steps):
    x = faces[torch.randint(0, len(faces), (64,))]
    recon = model(x)
    loss = nn.functional.mse_loss(recon, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % args.summary_every == 0:
        writer.add_scalar("loss", loss.item(), step)
        for name, p in model.named_parameters():
            writer.add_histogram("weights/" + name, p, step)
            writer.add_histogram("grads/" + name, p.grad, step)
print(f"final loss {loss.item():.4f}")
print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")
writer.close()
