from torch import nn


class Picker(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(3, width, 11, stride=2, padding=5),
            nn.ReLU(),
            nn.Conv1d(width, 2 * width, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(2 * width, 2 * width, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(2 * width, 1, 7, padding=3),
        )

    def forward(self, traces):
        return self.net(traces).squeeze(1)
