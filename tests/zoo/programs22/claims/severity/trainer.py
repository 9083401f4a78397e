import time

from torch.nn import functional as F


class Trainer:
    def __init__(self, model, optimizer, loader, max_steps, report_every=40):
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
        self.max_steps = max_steps
        self.report_every = report_every
        self.step = 0

    def batches(self):
        while True:
            yield from self.loader

    def train_batch(self, columns, cost):
        loss = F.huber_loss(self.model(columns), cost)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self):
        start = time.perf_counter()
        for columns, cost in self.batches():
            loss = self.train_batch(columns, cost)
            self.step += 1
            if self.step % self.report_every == 0:
                print(f"step {self.step}: loss {loss.item():.4f}")
            if self.step == self.max_steps:
                break
        print(f"trained {self.step} steps in {time.perf_counter() - start:.3f} s")
