import torch


class Keeper:
    """Writes the model whenever the smoothed loss is the lowest so far."""

    def __init__(self, path, every=1):
        self.path = path
        self.every = every
        self.seen = 0
        self.smooth = None
        self.best = float("inf")

    def update(self, loss, model, optimizer):
        self.seen += 1
        self.smooth = loss if self.smooth is None else 0.95 * self.smooth + 0.05 * loss
        if self.seen % self.every == 0 and self.smooth < self.best:
            self.best = self.smooth
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "loss": self.smooth,
                    "step": self.seen,
                },
                self.path,
            )
