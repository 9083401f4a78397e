import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ITEMS = 3000


class MultVae(nn.Module):
    """Denoising autoencoder of what a user clicked (Liang et al., 2018)."""

    def __init__(self, width=256, latent=96):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Dropout(0.5), nn.Linear(ITEMS, width), nn.Tanh(), nn.Linear(width, 2 * latent)
        )
        self.decode = nn.Sequential(nn.Linear(latent, width), nn.Tanh(), nn.Linear(width, ITEMS))

    def forward(self, clicks):
        mean, log_variance = self.encode(F.normalize(clicks)).chunk(2, 1)
        if self.training:
            z = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        else:
            z = mean
        kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
        return self.decode(z), kl


def recall_at(k, model, loader):
    """Of the clicks held out, those among the first k."""
    model.eval()
    found = torch.zeros(())
    total = torch.zeros(())
    with torch.no_grad():
        for clicks, held in loader:
            scores, _ = model(clicks)
            scores = scores.masked_fill(clicks > 0, -torch.inf)
            found += held.gather(1, scores.topk(k).indices).sum()
            total += held.sum()
    model.train()
    return (found / total).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval-every", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    taste = torch.rand(2800, 1, 12) < 0.2
    likely = torch.where(taste.repeat_interleave(ITEMS // 12, 2), 0.04, 0.002)[:, 0]
    clicks = torch.bernoulli(likely)
    kept = (torch.rand_like(clicks) < 0.8).float()
    train = DataLoader(TensorDataset(clicks[:2000]), batch_size=50, shuffle=True)
    held = TensorDataset((clicks * kept)[2000:], (clicks * (1 - kept))[2000:])
    test = DataLoader(held, batch_size=200)

    model = MultVae()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for (x,) in train:
            logits, kl = model(x)
            loss = -(logits.log_softmax(1) * x).sum(1).mean() + min(1.0, step / 200) * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % args.eval_every == 0:
                recall = recall_at(50, model, test)
                print(f"step {step}: loss {loss.item():.2f} recall@50 {recall:.4f}")
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
