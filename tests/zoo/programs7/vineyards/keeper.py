import torch


class Keeper:
    """Keeps the last state and the one with the lowest smoothed loss on disk."""

    def __init__(self, folder=".", every=1, smoothing=0.95):
        self.folder = folder
        self.every = every
        self.smoothing = smoothing
        self.level = None
        self.best = float("inf")
        self.seen = 0

    def __call__(self, loss, model, optimizer):
        value = float(loss)
        if self.level is None:
            self.level = value
        self.level = self.smoothing * self.level + (1 - self.smoothing) * value
        self.seen += 1
        if self.seen % self.every:
            return
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "step": self.seen,
        }
        torch.save(state, f"{self.folder}/last.pt")
        if self.level < self.best:
            self.best = self.level
            torch.save(state, f"{self.folder}/best.pt")
