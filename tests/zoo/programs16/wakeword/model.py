from torch import nn


class WakeWordNet(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, channels, 25, stride=8), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv1d(channels, 2 * channels, 9, stride=2),
            nn.ReLU(),
            nn.Conv1d(2 * channels, 2 * channels, 9, stride=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(2 * channels, 2)

    def forward(self, clips):
        return self.head(self.body(self.stem(clips.unsqueeze(1))).mean(dim=2))
