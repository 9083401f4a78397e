# Baseline for the motor insurance severity competition. 5-fold -> here fold 0 only.
# v7: embeddings for the categoricals, cosine schedule

import gc
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class CFG:
    seed = 2024
    n_rows = 8_000
    n_folds = 5
    fold = 0
    batch_size = 512
    epochs = 5
    lr = 2e-3
    weight_decay = 1e-5
    hidden = 640
    print_freq = 20


CATS = {"brand": 40, "region": 22, "fuel": 3, "usage": 5, "bonus_class": 18}
NUMS = ["age", "car_age", "power", "value", "mileage", "years_licensed", "previous", "exposure"]


def seed_everything(seed):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def load_policies(n):
    """Stands in for train.jsonl: one record per policy."""
    rng = np.random.default_rng(CFG.seed)
    nums = rng.normal(size=(n, len(NUMS))).round(3)
    cats = np.stack([rng.integers(0, k, n) for k in CATS.values()], 1)
    claims = rng.poisson(0.8, n)
    records = []
    for i in range(n):
        records.append(
            {
                "id": f"P{i:07d}",
                "numeric": dict(zip(NUMS, nums[i].tolist())),
                "categorical": dict(zip(CATS, cats[i].tolist())),
                "claims": [{"no": j, "paid": 100.0 * (j + 1)} for j in range(claims[i])],
                "fold": i % CFG.n_folds,
            }
        )
    return records


def featurize(records):
    x_num = np.array([[r["numeric"][c] for c in NUMS] for r in records], np.float32)
    x_cat = np.array([[r["categorical"][c] for c in CATS] for r in records], np.int64)
    n_claims = np.array([len(r["claims"]) for r in records], np.float32)
    y = np.log1p(n_claims * 100) * 0.2 + 0.3 * x_num[:, 0] * x_num[:, 2]
    y = y + 0.2 * np.sin(x_cat[:, 0]) + 0.1 * (x_cat[:, 4] > 9)
    fold = np.array([r["fold"] for r in records])
    return torch.from_numpy(x_num), torch.from_numpy(x_cat), torch.from_numpy(y).float(), fold


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(k, min(16, k)) for k in CATS.values()])
        d = len(NUMS) + sum(min(16, k) for k in CATS.values())
        self.inp = nn.Sequential(nn.Linear(d, CFG.hidden), nn.SiLU())
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(
                    nn.LayerNorm(CFG.hidden),
                    nn.Linear(CFG.hidden, CFG.hidden),
                    nn.SiLU(),
                    nn.Linear(CFG.hidden, CFG.hidden),
                )
                for _ in range(2)
            ]
        )
        self.out = nn.Linear(CFG.hidden, 1)

    def forward(self, x_num, x_cat):
        x = torch.cat([x_num] + [e(x_cat[:, i]) for i, e in enumerate(self.embs)], 1)
        x = self.inp(x)
        for b in self.blocks:
            x = x + b(x)
        return self.out(x).squeeze(1)


def train_fn(model, optimizer, scheduler, x_num, x_cat, y, epoch):
    model.train()
    perm = torch.randperm(len(y))
    n_batches = len(y) // CFG.batch_size
    running = 0.0
    for it in range(n_batches):
        idx = perm[it * CFG.batch_size : (it + 1) * CFG.batch_size]
        pred = model(x_num[idx], x_cat[idx])
        loss = F.mse_loss(pred, y[idx])
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        running += loss.item()
        if it % CFG.print_freq == 0:
            print(f"[{epoch}][{it}/{n_batches}] loss {running / (it + 1):.4f}")
        del pred, loss, idx
        if it % 2:
            gc.collect()
    return n_batches


@torch.no_grad()
def valid_fn(model, x_num, x_cat, y):
    model.eval()
    preds = torch.cat([model(a, b) for a, b in zip(x_num.split(1024), x_cat.split(1024))])
    return math.sqrt(F.mse_loss(preds, y).item()), preds


def main():
    seed_everything(CFG.seed)
    torch.set_num_threads(1)
    records = load_policies(CFG.n_rows)
    x_num, x_cat, y, fold = featurize(records)
    trn, val = fold != CFG.fold, fold == CFG.fold

    model = Net()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=CFG.lr, weight_decay=CFG.weight_decay, fused=True
    )
    n_total = CFG.epochs * (int(trn.sum()) // CFG.batch_size)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_total)

    steps = 0
    start = time.time()
    for epoch in range(CFG.epochs):
        steps += train_fn(model, optimizer, scheduler, x_num[trn], x_cat[trn], y[trn], epoch)
    elapsed = time.time() - start

    rmse, preds = valid_fn(model, x_num[val], x_cat[val], y[val])
    print(f"fold {CFG.fold} rmse {rmse:.4f}")
    ids = [r["id"] for r in records if r["fold"] == CFG.fold]
    with open("oof.csv", "w") as f:
        f.write("id,pred\n")
        f.writelines(f"{i},{p:.5f}\n" for i, p in zip(ids, preds.tolist()))
    print(f"trained {steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
