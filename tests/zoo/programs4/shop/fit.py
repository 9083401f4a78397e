"""Session-based recommendation with Lightning."""

import argparse
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sessions(Dataset):
    def __init__(self, n, n_items, length=20, seed=0):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(n_items, (n, 1), generator=g)
        stride = torch.randint(1, 6, (n, 1), generator=g)
        self.items = (start + stride * torch.arange(length + 1)) % n_items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i, :-1], self.items[i, -1]


class SessionModel(L.LightningModule):
    def __init__(self, n_items=20000, dim=128, n_negatives=512):
        super().__init__()
        self.save_hyperparameters()
        self.items = nn.Embedding(n_items, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, dim)

    def forward(self, sessions):
        return self.out(self.gru(self.items(sessions))[1][0])

    def training_step(self, batch, batch_idx):
        sessions, target = batch
        query = self(sessions)
        negatives = torch.randint(self.hparams.n_items, (self.hparams.n_negatives,))
        candidates = torch.cat([target, negatives])
        logits = query @ self.items(candidates).T
        loss = nn.functional.cross_entropy(logits, torch.arange(len(target)))
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adagrad(self.parameters(), lr=0.05)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--save-every", type=int, default=2)
    p.add_argument("--sessions", type=int, default=14400)
    p.add_argument("--batch-size", type=int, default=96)
    a = p.parse_args()
    L.seed_everything(0)
    torch.set_num_threads(1)
    loader = DataLoader(Sessions(a.sessions, 20000), a.batch_size, shuffle=True)
    keep = ModelCheckpoint("ckpt", save_top_k=2, monitor="train_loss", save_last=True,
                           every_n_train_steps=a.save_every)  # fmt: skip
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=1,
        callbacks=[keep],
        logger=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    model = SessionModel()
    start = time.perf_counter()
    trainer.fit(model, loader)
    seconds = time.perf_counter() - start
    print(f"loss {trainer.callback_metrics['train_loss']:.5f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
