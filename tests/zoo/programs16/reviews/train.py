import time
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from model import ReviewLSTM


@dataclass
class Config:
    reviews: int = 3840
    length: int = 40
    vocab_size: int = 4000
    batch_size: int = 32
    accumulate: int = 2
    epochs: int = 1


class RunningAccuracy:
    def __init__(self):
        self.right, self.seen = torch.zeros(()), 0

    def update(self, logits, stars):
        self.right += (logits.detach().argmax(1) == stars).sum()
        self.seen += len(stars)

    def compute(self):
        return float(self.right) / self.seen


def main(cfg: Config):
    set_seed(5)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=cfg.accumulate)
    ids = torch.randint(cfg.vocab_size, (cfg.reviews, cfg.length))
    loader = DataLoader(TensorDataset(ids, ids[:, 0] % 5), batch_size=cfg.batch_size, shuffle=True)
    model = ReviewLSTM(cfg.vocab_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion, accuracy, steps = nn.CrossEntropyLoss(), RunningAccuracy(), 0
    started = time.perf_counter()
    for epoch in range(cfg.epochs):
        for ids, stars in loader:
            with accelerator.accumulate(model):
                logits = model(ids)
                accelerator.backward(criterion(logits, stars))
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            accuracy.update(logits, stars)
            steps += 1
        accelerator.print(f"epoch {epoch}: accuracy {accuracy.compute():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main(Config())
