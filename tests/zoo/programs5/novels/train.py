"""Character model of novels, followed with wandb."""

import argparse
import os
import time

os.environ.setdefault("WANDB_SILENT", "true")

import torch
import wandb
from torch import nn


class CharModel(nn.Module):
    def __init__(self, n_chars=64, dim=96, depth=3):
        super().__init__()
        self.embed = nn.Embedding(n_chars, dim)
        self.rnn = nn.GRU(dim, dim, depth, batch_first=True)
        self.out = nn.Linear(dim, n_chars)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def make_novel(length, n_chars, generator):
    follow = torch.randint(n_chars, (n_chars, 3), generator=generator)
    text = torch.zeros(length, dtype=torch.long)
    choice = torch.randint(3, (length,), generator=generator)
    for i in range(1, length):
        text[i] = follow[text[i - 1], choice[i]]
    return text


def report(model, loss, step):
    values = {"loss": loss.item()}
    for name, p in model.named_parameters():
        values[f"weights/{name}"] = wandb.Histogram(p.detach().numpy())
        values[f"gradients/{name}"] = wandb.Histogram(p.grad.numpy())
    wandb.log(values, step=step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--log-every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    text = make_novel(30000, 64, torch.Generator().manual_seed(0))
    windows = text.unfold(0, 33, 1)
    model = CharModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    wandb.init(project="novels", mode="offline", config=vars(args))
    start = time.perf_counter()
    for step in range(args.steps):
        batch = windows[torch.randint(len(windows), (16,))]
        scores = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.log_every == 0:
            report(model, loss, step)
    seconds = time.perf_counter() - start
    wandb.finish()
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
