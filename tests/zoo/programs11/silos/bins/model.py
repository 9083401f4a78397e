from torch import nn


class TraceNet(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 32, 16, stride=8, padding=4),
            nn.ReLU(),
            nn.Conv1d(32, 64, 8, stride=4, padding=2),
            nn.ReLU(),
            nn.Conv1d(64, 128, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv1d(128, 96, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(96, kinds)

    def forward(self, x):
        return self.head(self.body(x.unsqueeze(1)).mean(dim=2))
