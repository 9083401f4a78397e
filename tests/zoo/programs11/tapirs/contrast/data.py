import torch


class TwoViews:
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        self.base = torch.randn(4096, cfg.inputs, generator=g)
        self.noise = 0.2 * torch.randn(4096, cfg.inputs, generator=g)
        self.cfg, self.generator = cfg, g

    def pick(self, table):
        at = torch.randint(0, len(table), (self.cfg.batch,), generator=self.generator)
        return table[at]

    def __len__(self):
        return self.cfg.steps

    def __iter__(self):
        for _ in range(self.cfg.steps):
            x = self.pick(self.base)
            yield x + self.pick(self.noise), x + self.pick(self.noise)
