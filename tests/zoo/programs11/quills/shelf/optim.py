import torch


class Together:
    """Several optimizers behind the interface of one."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


def build_optimizer(model, cfg):
    if cfg.tables == "sparse":
        return Together(
            torch.optim.SparseAdam(list(model.words.parameters()), lr=cfg.lr),
            torch.optim.Adam(model.mlp.parameters(), lr=cfg.lr, fused=True),
        )
    return Together(torch.optim.Adam(model.parameters(), lr=cfg.lr, fused=True))
