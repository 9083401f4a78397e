from torch import nn


class TitleNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.words = nn.EmbeddingBag(
            cfg.hashes, cfg.dim, mode="mean", sparse=cfg.tables == "sparse"
        )
        self.mlp = nn.Sequential(
            nn.Linear(cfg.dim, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.genres),
        )

    def forward(self, ids):
        return self.mlp(self.words(ids))
