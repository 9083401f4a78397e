import torch
from torch.nn import functional as F


def iou(prediction, target, classes):
    scores = []
    for c in range(classes):
        p, t = prediction == c, target == c
        union = (p | t).sum().item()
        if union:
            scores.append((p & t).sum().item() / union)
    return sum(scores) / len(scores)


class Trainer:
    def __init__(self, cfg, model, steps):
        self.cfg, self.model = cfg, model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=cfg.lr, total_steps=steps
        )
        self.steps = 0

    def fit_epoch(self, loader):
        self.model.train()
        total = 0.0
        for images, masks in loader:
            loss = F.cross_entropy(self.model(images), masks)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            self.optimizer.step()
            self.schedule.step()
            total += loss.item()
            self.steps += 1
        return total / len(loader)

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        scores = [iou(self.model(x).argmax(1), y, self.cfg.classes) for x, y in loader]
        return sum(scores) / len(scores)
