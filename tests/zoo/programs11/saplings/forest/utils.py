import gc

import torch


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def free_memory():
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


class Housekeeping:
    def __init__(self, every):
        self.every, self.calls = every, 0

    def __call__(self):
        self.calls += 1
        if self.calls % self.every == 0:
            free_memory()
