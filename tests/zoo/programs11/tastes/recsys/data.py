import torch


class Interactions:
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        self.profiles = torch.randn(cfg.users, cfg.profile, generator=g)
        self.items = torch.randint(0, cfg.items, (cfg.users, cfg.liked), generator=g)
        self.cfg, self.generator = cfg, g

    def histories(self):
        return [set(row) for row in self.items.tolist()]

    def __len__(self):
        return 15

    def __iter__(self):
        cfg = self.cfg
        for _ in range(len(self)):
            users = torch.randint(0, cfg.users, (cfg.batch,), generator=self.generator)
            which = torch.randint(0, cfg.liked, (cfg.batch,), generator=self.generator)
            yield users, self.items[users, which]
