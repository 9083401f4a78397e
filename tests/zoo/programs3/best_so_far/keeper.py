import torch


class Keeper:
    """Writes the model as it is now, and as it was when the smoothed loss was lowest."""

    def __init__(self, path, every=1):
        self.path = path
        self.every = every
        self.seen = 0
        self.smooth = None
        self.best = float("inf")

    def update(self, loss, model, optimizer):
        self.seen += 1
        self.smooth = loss if self.smooth is None else 0.95 * self.smooth + 0.05 * loss
        if self.seen % self.every != 0:
            return
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loss": self.smooth,
            "step": self.seen,
        }
        torch.save(state, self.path + ".last")
        if self.smooth < self.best:
            self.best = self.smooth
            torch.save(state, self.path)
