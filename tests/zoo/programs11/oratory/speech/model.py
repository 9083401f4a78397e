from torch import nn


class SpeakerNet(nn.Module):
    def __init__(self, speakers):
        super().__init__()
        self.frontend = nn.Conv1d(1, 64, 25, stride=5, padding=12)
        self.conv1 = nn.Conv1d(64, 128, 9, stride=4, padding=4)
        self.conv2 = nn.Conv1d(128, 128, 5, stride=2, padding=2)
        self.act = nn.ReLU()
        self.out = nn.Linear(128, speakers)

    def forward(self, x):
        x = self.act(self.frontend(x))
        x = self.act(self.conv1(x))
        x = self.act(self.conv2(x))
        return self.out(x.mean(dim=2))
