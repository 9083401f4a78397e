"""Next byte of a made-up text; two micro-batches to an update."""

import math
import random
import time

import torch
import torch.nn.functional as F
from model import Config, TinyLM
from torch.utils.data import DataLoader, Dataset

EPOCHS, ACCUMULATE, BATCH, WARMUP = 2, 2, 8, 10


class Windows(Dataset):
    """Pieces of the text that overlap by half."""

    def __init__(self, text, context):
        self.text = text
        self.context = context

    def __len__(self):
        return 2 * (len(self.text) // self.context) - 2

    def __getitem__(self, index):
        begin = index * self.context // 2
        window = self.text[begin : begin + self.context + 1]
        return window[:-1], window[1:]


def make_text(length):
    rng = random.Random(0)
    words = ["".join(rng.choices("aeioubcdlmnrst", k=rng.randint(2, 8))) for _ in range(300)]
    text = " ".join(rng.choice(words) for _ in range(length // 5))
    return torch.tensor(list(text[:length].encode()))


def main():
    torch.manual_seed(1337)
    torch.set_num_threads(1)
    windows = Windows(make_text(20_000), Config.context)
    loader = DataLoader(windows, batch_size=BATCH, shuffle=True, drop_last=True)
    model = TinyLM(Config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    updates = EPOCHS * len(loader) // ACCUMULATE

    def rate(update):
        if update < WARMUP:
            return (update + 1) / WARMUP
        return 0.1 + 0.45 * (1 + math.cos(math.pi * (update - WARMUP) / (updates - WARMUP)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    step = 0
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        for x, y in loader:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            (loss / ACCUMULATE).backward()
            step += 1
            if step % ACCUMULATE == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step}: loss {loss.item():.3f}")
    took = time.perf_counter() - begin
    torch.save(model.state_dict(), "lm.pt")
    print(f"trained {step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
