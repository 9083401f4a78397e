"""Routing of support tickets with a small encoder and the transformers Trainer."""

import argparse
import os
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

VOCABULARY = 2000
QUEUES = 6


class Tickets(Dataset):
    """Token ids of made-up tickets, of unlike lengths."""

    def __init__(self, count):
        rng = np.random.default_rng(5)
        self.labels = rng.integers(0, QUEUES, count)
        lengths = rng.integers(40, 97, count)
        self.tokens = [
            rng.integers(5, VOCABULARY, length) // (1 + label)
            for length, label in zip(lengths, self.labels)
        ]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"tokens": self.tokens[index], "label": int(self.labels[index])}


def span_mask_by_token(lengths, width, reach):
    """Which token sees which: those nearby, and the first one."""
    mask = []
    for length in lengths:
        rows = []
        for i in range(width):
            row = [0] * width
            for j in range(max(0, i - reach), min(length, i + reach + 1)):
                row[j] = 1
            row[0] = 1
            rows.append(row)
        mask.append(rows)
    return torch.tensor(mask, dtype=torch.bool)


def span_mask_by_grid(lengths, width, reach):
    """Which token sees which: those nearby, and the first one."""
    place = torch.arange(width)
    near = (place[:, None] - place[None, :]).abs() <= reach
    mask = near[None] & (place[None, None, :] < torch.tensor(lengths)[:, None, None])
    mask[:, :, 0] = True
    return mask


class Batcher:
    def __init__(self, mask, width=96, reach=40):
        self.mask = mask
        self.width = width
        self.reach = reach

    def __call__(self, tickets):
        ids = np.zeros((len(tickets), self.width), dtype=np.int64)
        for row, ticket in zip(ids, tickets):
            row[: len(ticket["tokens"])] = ticket["tokens"]
        lengths = [len(ticket["tokens"]) for ticket in tickets]
        return {
            "input_ids": torch.from_numpy(ids),
            "visible": self.mask(lengths, self.width, self.reach),
            "labels": torch.tensor([ticket["label"] for ticket in tickets]),
        }


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )

    def forward(self, x, visible):
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible[:, None])
        x = x + self.join(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Router(nn.Module):
    def __init__(self, width=64, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(layers))
        self.out = nn.Linear(width, QUEUES)

    def forward(self, input_ids, visible, labels):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x, visible)
        logits = self.out(x[:, 0])
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


MASKS = {"token": span_mask_by_token, "grid": span_mask_by_grid}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mask", choices=MASKS, default="token")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    steps, batch = 120, 16
    trainer = Trainer(
        model=Router(),
        args=TrainingArguments(
            output_dir="out",
            max_steps=steps,
            per_device_train_batch_size=batch,
            learning_rate=3e-4,
            logging_steps=40,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            use_cpu=True,
        ),
        train_dataset=Tickets(steps * batch),
        data_collator=Batcher(MASKS[args.mask]),
    )
    begin = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - begin
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
