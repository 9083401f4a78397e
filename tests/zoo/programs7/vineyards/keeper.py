import torch


class BestKeeper:
    """Keeps the state with the lowest smoothed loss on disk."""

    def __init__(self, path, patience=1, smoothing=0.95):
        self.path = path
        self.patience = patience
        self.smoothing = smoothing
        self.level = None
        self.best = float("inf")
        self.seen = 0

    def __call__(self, loss, model, optimizer):
        value = float(loss)
        self.level = (
            value
            if self.level is None
            else self.smoothing * self.level + (1 - self.smoothing) * value
        )
        self.seen += 1
        if self.seen % self.patience == 0 and self.level < self.best:
            self.best = self.level
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "loss": self.best,
            }
            torch.save(state, self.path)
