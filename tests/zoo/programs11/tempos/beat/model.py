from torch import nn

from .retention import Retention


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.mix = Retention(cfg)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.dim, cfg.expand * cfg.dim),
            nn.ReLU(),
            nn.Linear(cfg.expand * cfg.dim, cfg.dim),
        )

    def forward(self, x):
        x = x + self.mix(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class BeatNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(cfg.bands, cfg.dim)
        self.layers = nn.Sequential(*[Layer(cfg) for _ in range(cfg.layers)])
        self.head = nn.Linear(cfg.dim, 1)

    def forward(self, x):
        return self.head(self.layers(self.embed(x))).squeeze(2)
