"""Transactions of many accounts in a database; a sample is an account with its latest ones."""

import sqlite3

import numpy as np
import torch
from torch.utils.data import Dataset


def keep_books(path, n_accounts, per_account, index, seed=0):
    rng = np.random.default_rng(seed)
    account = np.repeat(np.arange(n_accounts), per_account)
    rng.shuffle(account)
    amount = rng.lognormal(3, 1, len(account)) * np.where(account % 3 == 0, -1, 1)
    hour = rng.integers(24, size=len(account))
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE transactions (account INTEGER, amount REAL, hour INTEGER)")
        base.executemany(
            "INSERT INTO transactions VALUES (?, ?, ?)",
            zip(account.tolist(), amount.tolist(), hour.tolist()),
        )
        if index:
            base.execute("CREATE INDEX by_account ON transactions (account)")


class Accounts(Dataset):
    def __init__(self, path, n_accounts, latest=16):
        self.base = sqlite3.connect(path)
        self.n_accounts = n_accounts
        self.latest = latest

    def __len__(self):
        return self.n_accounts

    def history(self, account):
        return self.base.execute(
            "SELECT amount, hour FROM transactions WHERE account = ? LIMIT ?",
            (account, self.latest),
        ).fetchall()

    def __getitem__(self, account):
        rows = np.array(self.history(account), dtype=np.float32)
        features = np.zeros((self.latest, 3), np.float32)
        features[: len(rows), 0] = np.sign(rows[:, 0]) * np.log1p(np.abs(rows[:, 0]))
        features[: len(rows), 1] = np.sin(rows[:, 1] * np.pi / 12)
        features[: len(rows), 2] = np.cos(rows[:, 1] * np.pi / 12)
        return torch.from_numpy(features), float(account % 3 == 0)
