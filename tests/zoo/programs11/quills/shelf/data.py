import torch


class Titles:
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        self.genre = torch.randint(0, cfg.genres, (cfg.books,), generator=g)
        own = torch.randint(0, cfg.hashes // cfg.genres, (cfg.books, cfg.words), generator=g)
        self.words = own * cfg.genres + self.genre[:, None]
        self.batch, self.generator = cfg.batch, g

    def __len__(self):
        return len(self.genre) // self.batch

    def __iter__(self):
        order = torch.randperm(len(self.genre), generator=self.generator)
        for index in order.split(self.batch):
            yield self.words[index], self.genre[index]
