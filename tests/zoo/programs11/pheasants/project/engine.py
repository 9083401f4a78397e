import torch
from torch.nn import functional as F


class Tracker:
    """Remembers how well the model does on the images held out."""

    def __init__(self, accelerator, loader, every):
        self.accelerator, self.loader, self.every = accelerator, loader, every
        self.history = []

    @torch.no_grad()
    def evaluate(self, model):
        model.eval()
        right = total = 0
        for images, labels in self.loader:
            guess = model(images).argmax(dim=1)
            guess, labels = self.accelerator.gather_for_metrics((guess, labels))
            right += (guess == labels).sum()
            total += len(labels)
        model.train()
        return float(right) / total

    def after_step(self, model, step):
        if step % self.every == 0:
            self.history.append((step, self.evaluate(model)))


def train(accelerator, model, optimizer, loader, tracker, epochs):
    step = 0
    model.train()
    for _ in range(epochs):
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            step += 1
            tracker.after_step(model, step)
    return step
