"""Next byte of a made-up text; two micro-batches to an update."""

import math
import random
import time

import torch
import torch.nn.functional as F
from model import Config, TinyLM

UPDATES, ACCUMULATE, BATCH, WARMUP = 75, 2, 8, 10


def make_text(length):
    rng = random.Random(0)
    words = ["".join(rng.choices("aeioubcdlmnrst", k=rng.randint(2, 8))) for _ in range(300)]
    text = " ".join(rng.choice(words) for _ in range(length // 5))
    return torch.tensor(list(text.encode()))


def get_batch(text, context):
    begin = torch.randint(len(text) - context - 1, (BATCH,))
    window = text[begin[:, None] + torch.arange(context + 1)]
    return window[:, :-1], window[:, 1:]


def rate(update):
    if update < WARMUP:
        return (update + 1) / WARMUP
    return 0.1 + 0.45 * (1 + math.cos(math.pi * (update - WARMUP) / (UPDATES - WARMUP)))


def main():
    torch.manual_seed(1337)
    torch.set_num_threads(1)
    text = make_text(200_000)
    model = TinyLM(Config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)

    begin = time.perf_counter()
    for update in range(UPDATES):
        optimizer.zero_grad(set_to_none=True)
        for _ in range(ACCUMULATE):
            x, y = get_batch(text, Config.context)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            (loss / ACCUMULATE).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if update % 25 == 0:
            print(f"update {update}: loss {loss.item():.3f}")
    took = time.perf_counter() - begin
    torch.save(model.state_dict(), "lm.pt")
    print(f"trained {UPDATES} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
