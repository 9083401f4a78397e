"""A language model of ship's logs; updates are made from several small batches."""

import time

import torch
from config import Config
from lm import LanguageModel
from torch.utils.data import DataLoader, Dataset


class Windows(Dataset):
    def __init__(self, text, context):
        self.text = text
        self.context = context

    def __len__(self):
        return (len(self.text) - 1) // self.context

    def __getitem__(self, index):
        first = index * self.context
        piece = self.text[first : first + self.context + 1]
        return piece[:-1], piece[1:]


def write_log(cfg, length):
    gen = torch.Generator().manual_seed(cfg.seed)
    jumps = torch.randint(1, 5, (length,), generator=gen)
    return jumps.cumsum(0) % cfg.vocab


def cycle(loader):
    while True:
        yield from loader


cfg = Config()
torch.set_num_threads(1)
torch.manual_seed(cfg.seed)
loader = DataLoader(
    Windows(write_log(cfg, 50_000), cfg.context), cfg.micro_batch, shuffle=True, drop_last=True
)
model = LanguageModel(cfg)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=(0.9, 0.95))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / cfg.warmup))

source = cycle(loader)
start = time.perf_counter()
batches = 0
for update in range(1, cfg.updates + 1):
    optimizer.zero_grad(set_to_none=True)
    total = 0.0
    for _ in range(cfg.accumulate):
        ids, targets = next(source)
        loss = model(ids, targets) / cfg.accumulate
        loss.backward()
        total += loss.detach()
        batches += 1
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if update % 20 == 0:
        print(f"update {update} loss {float(total):.4f}")
seconds = time.perf_counter() - start
torch.save({"model": model.state_dict(), "update": update}, "last.pt")
print(f"trained {batches} steps in {seconds:.3f} s")
