from torch import nn


class Surrogate(nn.Module):
    def __init__(self, points, width, depth):
        super().__init__()
        self.lift = nn.Linear(points, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
            for _ in range(depth)
        )
        self.project = nn.Linear(width, points)

    def forward(self, state):
        h = self.lift(state)
        for block in self.blocks:
            h = h + block(h)
        return state + self.project(h)
